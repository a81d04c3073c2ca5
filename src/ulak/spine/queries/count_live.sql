-- By kind: all that live, and of these the active ones (ready, leased, suspect).
SELECT kind, count(*), sum(CASE WHEN state IN (0, 2, 4) THEN 1 ELSE 0 END) FROM job GROUP BY kind
