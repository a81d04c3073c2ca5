UPDATE past SET detail = given.detail FROM unnest(:detail::text[], :id::bigint[]) AS given (detail, id) WHERE past.id = given.id
