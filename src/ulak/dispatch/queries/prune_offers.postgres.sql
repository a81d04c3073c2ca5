DELETE FROM dispatch_offer
WHERE task = ANY(:ids::bigint[])
