SELECT assigned_at - created_at FROM dispatch_task WHERE assigned_at IS NOT NULL ORDER BY id DESC LIMIT :n
