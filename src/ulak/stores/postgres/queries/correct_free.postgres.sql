-- A pool that nobody has opened may have live jobs all the same, after a move. Whoever opens it adds its bound.
INSERT INTO capacity AS known (pool, bound, free, granted) VALUES (:pool, 0, :number, 0)
ON CONFLICT (pool) DO UPDATE SET free = known.free + excluded.free
