INSERT INTO changes_watch (id, feed, keys, fields, webhook, kind, secret, made_at) VALUES (:id, :feed, :keys, :fields, :webhook, :kind, :secret, :now)
