-- Ordered, so that no plan goes over all publications of the feed by their positions.
DELETE FROM changes_publication WHERE feed = :feed AND stamp = ANY(ARRAY(
  SELECT stamp FROM changes_publication WHERE feed = :feed AND stamp <= :stamp ORDER BY feed, stamp
))
