-- What the entry said when it was opened; NULL in a row that is older than these columns.
ALTER TABLE cron ADD COLUMN expression TEXT;
ALTER TABLE cron ADD COLUMN time_zone TEXT;
