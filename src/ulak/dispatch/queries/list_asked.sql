SELECT helper FROM dispatch_offer WHERE task = :task
