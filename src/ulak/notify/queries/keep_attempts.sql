INSERT INTO notify_attempt (id, url, job, number, at, millis, status, code) VALUES :rows
