SELECT head_pos FROM changes_publication WHERE feed = :feed AND stamp <= :stamp ORDER BY stamp DESC LIMIT 1
