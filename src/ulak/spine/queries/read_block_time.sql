-- When the block was written that holds an event.
SELECT at FROM event_block WHERE first <= :seq ORDER BY first DESC LIMIT 1
