SELECT value FROM meta WHERE name = 'uuid_mark'
