"""The parent's side of the worker processes: queues, balancing, births and deaths."""
