INSERT INTO notify_inbox (id, recipient, subject, body, metadata, created_at, delivered_at)
VALUES (:id, :recipient, :subject, :body, :metadata, :created_at, :now) ON CONFLICT (id) DO NOTHING
