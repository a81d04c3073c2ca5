SELECT id, registry, status, verdict, error, started_at, ended_at, digest, feeds, preview, held FROM changes_sync WHERE registry = :registry AND held = 1 ORDER BY id DESC LIMIT 1
