SELECT page, place FROM buses_waiting WHERE topic = :topic ORDER BY page DESC, place DESC LIMIT 1
