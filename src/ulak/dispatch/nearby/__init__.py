"""Nearness: distances, cells and boxes on the globe, and the search over helpers."""
