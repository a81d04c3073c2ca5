-- By the rows' places: as a join, a plan that was made on an empty table compares each row with each.
DELETE FROM buses_waiting WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM buses_waiting
  WHERE topic = :topic AND (page, place) BETWEEN (:page, :place) AND (:last_page, :last_place)
  ORDER BY topic, page, place LIMIT :n
))
