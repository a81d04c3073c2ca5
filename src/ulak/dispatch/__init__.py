"""Dispatch: find the right nearby helper, offer the task to one after another, each with a deadline."""
