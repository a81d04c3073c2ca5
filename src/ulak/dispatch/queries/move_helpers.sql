UPDATE dispatch_helper SET latitude = :latitude, longitude = :longitude, cell = :cell, x = :x, y = :y, z = :z, position_at = :position_at
WHERE id = :id
