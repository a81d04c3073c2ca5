"""The room's wire: requests, events, their schemas, and the messages of the topics."""
