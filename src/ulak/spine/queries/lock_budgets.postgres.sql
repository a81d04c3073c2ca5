SELECT kind FROM budget WHERE kind = ANY(:kinds::text[]) ORDER BY kind FOR UPDATE
