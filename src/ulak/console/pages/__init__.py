"""One module of pages per resource or room, found by the room's name."""
