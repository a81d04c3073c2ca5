"""Whom plans reach: profiles, channels, routes, and how they are found and proven."""
