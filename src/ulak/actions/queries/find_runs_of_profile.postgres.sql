-- Runs of which a step is for this profile, or was before it went on to somebody else. Fenced: to have them in order, a
-- plan would walk over all runs.
SELECT run FROM (SELECT run FROM actions_step WHERE profile_id = :profile OFFSET 0) AS present
UNION
SELECT run FROM (SELECT run FROM actions_former WHERE profile_id = :profile OFFSET 0) AS former
