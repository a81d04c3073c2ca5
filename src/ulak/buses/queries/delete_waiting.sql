DELETE FROM buses_waiting WHERE topic = :topic AND (page, place) <= (:page, :place)
