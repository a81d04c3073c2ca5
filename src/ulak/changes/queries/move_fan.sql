UPDATE changes_feed SET fan_pos = :pos WHERE name = :name AND fan_pos = :was
