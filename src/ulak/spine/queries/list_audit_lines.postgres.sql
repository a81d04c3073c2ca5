SELECT seq, at, who, verb, object, detail, hash FROM audit
WHERE seq < :before AND (:who::text IS NULL OR who = :who::text) AND (:object::text IS NULL OR object = :object::text)
  AND (:verb::text IS NULL OR verb = :verb::text OR (verb COLLATE "C" >= :low::text AND verb COLLATE "C" < :high::text))
ORDER BY seq DESC LIMIT :n
