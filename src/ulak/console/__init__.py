"""The console: pages in the browser over the public routes. It translates and decides nothing."""
