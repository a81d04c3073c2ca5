UPDATE budget SET tokens = tokens + :tokens WHERE kind = :kind
