DELETE FROM actions_sent WHERE hour < :before
