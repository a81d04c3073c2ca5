"""The same work on a Ray cluster."""
