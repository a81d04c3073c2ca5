SELECT seq, at, who, verb, object, detail, hash FROM audit
WHERE seq < :before AND (:who IS NULL OR who = :who) AND (:object IS NULL OR object = :object)
  AND (:verb IS NULL OR verb = :verb OR (verb >= :low AND verb < :high))
ORDER BY seq DESC LIMIT :n
