SELECT page, place, message FROM buses_waiting
WHERE topic = :topic AND (page, place) > (:page, :place) ORDER BY page, place LIMIT :n
