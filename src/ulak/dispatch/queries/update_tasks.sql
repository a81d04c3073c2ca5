UPDATE dispatch_task SET state = :state, helper = :helper, helper_name = :helper_name, searches = :searches, max_searches = :max_searches, searched_at = :searched_at, place = :place, timer = :timer, assigned_at = :assigned_at, ended_at = :ended_at, reason = :reason
WHERE id = :id AND state = :before
