SELECT feed, pos, name, stamp, count, state_hash, bytes, digest, made_at FROM changes_archive
WHERE feed = :feed AND made_at < :before AND pos < (SELECT MAX(pos) FROM changes_archive WHERE feed = :feed)
