SELECT v.pos, (
    SELECT b.body FROM changes_version AS b
    WHERE b.feed = v.feed AND b.key = v.key AND b.pos < v.pos ORDER BY b.pos DESC LIMIT 1
) FROM changes_version AS v WHERE v.feed = :feed AND v.pos = ANY(:positions::bigint[])
