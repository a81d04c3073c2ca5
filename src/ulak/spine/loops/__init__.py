"""Roles that run on the event loop and submit units to the store."""
