"""Verbs that run inside a transaction, on the writer's thread; each may be run again."""
