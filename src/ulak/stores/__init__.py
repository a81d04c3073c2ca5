"""Stores: the databases that the spine can stand on."""
