"""Plans: as people write them, as the store keeps them, and walked through on a virtual clock."""
