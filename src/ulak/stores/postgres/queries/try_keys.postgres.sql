SELECT bool_and(pg_try_advisory_xact_lock(hashtextextended(key, 0))) FROM unnest(:keys::text[]) AS key
