SELECT id, registry, status, verdict, error, started_at, ended_at, digest, feeds, preview, held FROM changes_sync WHERE registry = :registry AND id < :before ORDER BY id DESC LIMIT :n
