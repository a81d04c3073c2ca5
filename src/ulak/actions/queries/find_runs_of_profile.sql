-- Runs of which a step is for this profile, or was before it went on to somebody else.
SELECT run FROM actions_step WHERE profile_id = :profile UNION SELECT run FROM actions_former WHERE profile_id = :profile
