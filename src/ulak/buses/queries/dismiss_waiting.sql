DELETE FROM buses_waiting WHERE topic = :topic AND (page, place) IN (
  SELECT page, place FROM buses_waiting
  WHERE topic = :topic AND (page, place) BETWEEN (:page, :place) AND (:last_page, :last_place)
  ORDER BY page, place LIMIT :n
)
