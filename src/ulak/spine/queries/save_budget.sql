UPDATE budget SET tokens = :tokens, filled_at = :now WHERE kind = :kind
