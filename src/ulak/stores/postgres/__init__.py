"""The store on PostgreSQL, shared by processes."""
