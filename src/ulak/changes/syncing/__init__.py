"""One sync: its files, its comparison, its lease, and the publication that ends it."""
