INSERT INTO changes_feed (name, registry, epoch, buckets, state_hash)
VALUES (:name, :registry, :epoch, :buckets, :state_hash) ON CONFLICT (name) DO NOTHING
