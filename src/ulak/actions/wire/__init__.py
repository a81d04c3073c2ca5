"""What comes in and goes out: requests, events, their schemas, and what the topics get."""
