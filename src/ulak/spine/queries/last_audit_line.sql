SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1
