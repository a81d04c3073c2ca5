UPDATE changes_feed
SET head_pos = :head_pos, floor_pos = :floor_pos, floor_stamp = :floor_stamp, stamp = :stamp, head_stamp = :head_stamp,
    count = :count, aliases = :aliases, buckets = :buckets, state_hash = :state_hash, fan_pos = :fan_pos,
    pruned_pos = :pruned_pos
WHERE name = :name
