-- A search has no optional filters: one plan is right for all, and planning anew costs half as much as the search.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true)
