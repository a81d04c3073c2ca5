SELECT page, place, message FROM buses_waiting WHERE topic = :topic ORDER BY page, place LIMIT :n
