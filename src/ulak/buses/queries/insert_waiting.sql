INSERT INTO buses_waiting (topic, page, place, message)
VALUES :rows
