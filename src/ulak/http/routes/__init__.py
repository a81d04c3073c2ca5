"""One module of routes per resource or room; each translates and decides nothing."""
