-- For commits without events: what tells one whose reply was lost.
INSERT INTO meta (name, value) VALUES ('token', CAST(:token AS TEXT)) ON CONFLICT (name) DO UPDATE SET value = excluded.value
