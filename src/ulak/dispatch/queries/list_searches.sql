SELECT dispatch_decision.search, at, radius, found, excluded, counts, list
FROM dispatch_decision JOIN dispatch_candidate ON dispatch_candidate.task = dispatch_decision.task AND dispatch_candidate.search = dispatch_decision.search
WHERE dispatch_decision.task = :task ORDER BY dispatch_decision.search
