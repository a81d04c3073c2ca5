UPDATE dead SET payload = :payload WHERE id = :id
