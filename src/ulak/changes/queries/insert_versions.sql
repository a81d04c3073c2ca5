INSERT INTO changes_version (feed, pos, key, sync, change, hash, content_hash, parts, body) VALUES :rows
