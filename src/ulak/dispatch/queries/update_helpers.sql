UPDATE dispatch_helper SET name = :name, active = :active, doing = :doing, skills = :skills, language = :language, contact_type = :contact_type, contact = :contact, month = :month, completed = :completed, expired = :expired, timeouts = :timeouts, served_at = :served_at
WHERE id = :id
