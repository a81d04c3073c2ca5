SELECT head_pos, stamp, cause FROM changes_publication WHERE feed = :feed AND head_pos > :start ORDER BY head_pos LIMIT :n
