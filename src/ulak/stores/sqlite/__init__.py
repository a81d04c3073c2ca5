"""The store on one SQLite file, or in memory."""
