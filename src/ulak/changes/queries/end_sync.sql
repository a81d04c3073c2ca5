UPDATE changes_sync
SET status = :status, verdict = :verdict, error = :error, ended_at = :now, digest = :digest, feeds = :feeds,
    preview = :preview, held = :held
WHERE id = :id
