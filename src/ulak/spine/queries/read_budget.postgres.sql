SELECT tokens, filled_at FROM budget WHERE kind = :kind FOR UPDATE
