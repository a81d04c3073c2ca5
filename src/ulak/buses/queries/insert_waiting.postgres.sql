INSERT INTO buses_waiting (topic, page, place, message)
SELECT * FROM unnest(:topic::text[], :page::bigint[], :place::bigint[], :message::bytea[])
