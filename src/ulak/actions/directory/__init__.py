"""The recipients of plans: profiles, channels, routes, and how they are found and proven."""
