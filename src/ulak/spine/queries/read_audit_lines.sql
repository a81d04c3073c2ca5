SELECT seq, at, who, verb, object, detail, hash FROM audit WHERE seq > :after ORDER BY seq LIMIT :n
