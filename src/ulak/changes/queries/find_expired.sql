SELECT stamp, head_pos FROM changes_publication
WHERE feed = :feed AND stamp < :cutoff ORDER BY stamp DESC LIMIT 1
