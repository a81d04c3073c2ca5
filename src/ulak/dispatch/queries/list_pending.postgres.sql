SELECT task, dispatch_offer.id, dispatch_helper.helper, deadline_at FROM dispatch_offer JOIN dispatch_helper ON dispatch_helper.id = dispatch_offer.helper
WHERE state = 'OPEN' AND task = ANY(:tasks::bigint[])
