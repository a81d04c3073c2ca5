DELETE FROM action_routes WHERE action_plan_id = :plan
