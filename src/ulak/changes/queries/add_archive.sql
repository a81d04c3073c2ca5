INSERT INTO changes_archive (feed, pos, name, stamp, count, state_hash, bytes, digest, made_at)
VALUES (:feed, :pos, :name, :stamp, :count, :state_hash, :bytes, :digest, :now) ON CONFLICT (feed, pos) DO NOTHING
