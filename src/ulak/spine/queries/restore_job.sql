UPDATE job SET epoch = :epoch, note = :note WHERE id = :id
