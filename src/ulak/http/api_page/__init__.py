"""The offline API page at /docs."""
