"""The modules that a worker process imports: few, and quick to load."""
