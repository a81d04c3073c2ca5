SELECT helper, id FROM dispatch_helper WHERE helper = ANY(:names::text[])
