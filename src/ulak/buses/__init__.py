"""Message buses: events go out to topics, and requests come in from topics."""
