UPDATE changes_feed SET stamp = :stamp, head_stamp = COALESCE(head_stamp, :stamp) WHERE name = :name
