INSERT INTO changes_title (feed, pos, title) VALUES :rows
