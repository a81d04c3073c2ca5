"""Group commit, batches and readers, which both stores share."""
