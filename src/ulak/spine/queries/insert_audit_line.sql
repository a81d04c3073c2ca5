INSERT INTO audit (seq, at, who, verb, object, detail, hash) VALUES (:seq, :at, :who, :verb, :object, :detail, :hash)
