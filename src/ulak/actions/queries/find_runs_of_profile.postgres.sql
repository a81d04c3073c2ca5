-- Runs of which a step is for this profile, or was before it went on to somebody else.
SELECT DISTINCT run FROM actions_step WHERE profile_id = :profile OR (tried <> '[]' AND EXISTS (
  SELECT 1 FROM jsonb_array_elements_text(tried::jsonb) AS one JOIN recipient_channels AS channel ON channel.id = one::bigint
  WHERE channel.profile_id = :profile))
