"""One module of commands per resource or room."""
