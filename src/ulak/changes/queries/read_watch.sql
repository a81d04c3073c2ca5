SELECT id, feed, keys, fields, webhook, kind, secret, made_at FROM changes_watch WHERE feed = :feed AND id = :id
