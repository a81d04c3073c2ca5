SELECT body FROM actions_unreadable WHERE topic = :topic AND part = :part AND position = :position
