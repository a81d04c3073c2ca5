SELECT key, slot FROM job INDEXED BY job_slot
WHERE slot IS NOT NULL AND key IN (SELECT value FROM json_each(:keys))
