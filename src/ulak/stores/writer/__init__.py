"""Group commit, batches and readers: what both stores share."""
