UPDATE changes_feed SET pruned_pos = :pos WHERE name = :name AND pruned_pos < :pos
