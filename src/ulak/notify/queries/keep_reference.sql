INSERT INTO notify_reference (reference, job) VALUES :rows ON CONFLICT DO NOTHING
