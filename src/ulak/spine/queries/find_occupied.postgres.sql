SELECT key, slot FROM job WHERE slot IS NOT NULL AND key = ANY(:keys::text[])
