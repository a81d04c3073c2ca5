"""Message buses: what the event log says goes out to topics, and requests come in from them."""
