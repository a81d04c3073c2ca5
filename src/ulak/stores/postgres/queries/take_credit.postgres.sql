-- Opens the pool, follows a changed bound, and takes what is there up to what is wanted.
INSERT INTO capacity AS known (pool, bound, free, granted)
VALUES (:pool, :bound::bigint, :bound::bigint - least(:bound::bigint, :wanted::bigint), least(:bound::bigint, :wanted::bigint))
ON CONFLICT (pool) DO UPDATE SET
  bound = excluded.bound,
  granted = greatest(least(known.free + excluded.bound - known.bound, :wanted::bigint), 0),
  free = known.free + excluded.bound - known.bound - greatest(least(known.free + excluded.bound - known.bound, :wanted::bigint), 0)
RETURNING granted
