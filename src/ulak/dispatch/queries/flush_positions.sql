WITH new (id, latitude, longitude, cell, x, y, z, position_at) AS (VALUES :rows)
UPDATE dispatch_helper SET
  latitude = new.latitude,
  longitude = new.longitude,
  cell = new.cell,
  x = new.x,
  y = new.y,
  z = new.z,
  position_at = new.position_at
FROM new WHERE dispatch_helper.id = new.id
  AND (dispatch_helper.position_at IS NULL OR dispatch_helper.position_at <= new.position_at)
RETURNING dispatch_helper.id
