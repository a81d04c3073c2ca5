INSERT INTO changes_title (feed, pos, title)
SELECT * FROM unnest(:feed::text[], :pos::bigint[], :title::text[])
