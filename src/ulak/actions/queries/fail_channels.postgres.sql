UPDATE recipient_channels SET verify_status = 'failed', updated_at = :now
WHERE verify_status <> 'failed' AND id = ANY(:ids::bigint[]) RETURNING id, profile_id, channel_type
