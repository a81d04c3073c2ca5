INSERT INTO changes_publication (feed, stamp, head_pos, sync, cause) VALUES (:feed, :stamp, :head_pos, :sync, :cause)
