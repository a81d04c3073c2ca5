INSERT INTO changes_version (feed, pos, key, sync, change, hash, content_hash, parts, body)
SELECT * FROM unnest(:feed::text[], :pos::bigint[], :key::text[], :sync::bigint[], :change::bigint[], :hash::bytea[],
                     :content_hash::text[], :parts::text[], :body::text[])
