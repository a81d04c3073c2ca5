-- In both tables: kept by this transaction, and not deleted yet.
SELECT id FROM job WHERE id IN (SELECT value FROM json_each(:ids)) AND id IN (SELECT id FROM past)
