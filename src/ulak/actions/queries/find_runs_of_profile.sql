-- Runs of which a step is for this profile, or was before it went on to somebody else.
SELECT DISTINCT run FROM actions_step WHERE profile_id = :profile OR (tried <> '[]' AND EXISTS (
  SELECT 1 FROM json_each(tried) AS one JOIN recipient_channels AS channel ON channel.id = one.value
  WHERE channel.profile_id = :profile))
