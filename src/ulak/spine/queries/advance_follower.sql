UPDATE event_follower SET position = :position, advanced_at = :now WHERE name = :name AND position < :position
