UPDATE changes_feed SET floor_pos = :pos, floor_stamp = :stamp WHERE name = :name AND floor_pos <= :pos
