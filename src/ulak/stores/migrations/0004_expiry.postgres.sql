CREATE INDEX job_expiry ON job (expires_at) WHERE expires_at IS NOT NULL;
