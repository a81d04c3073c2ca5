INSERT INTO budget (kind, tokens, filled_at) VALUES (:kind, :tokens, :now) ON CONFLICT (kind) DO NOTHING
