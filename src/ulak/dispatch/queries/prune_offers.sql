DELETE FROM dispatch_offer
WHERE task IN (SELECT value FROM json_each(:ids))
