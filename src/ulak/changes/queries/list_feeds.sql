SELECT name, registry, epoch, head_pos, floor_pos, floor_stamp, stamp, head_stamp, count, aliases, buckets, state_hash, fan_pos, pruned_pos FROM changes_feed ORDER BY name
