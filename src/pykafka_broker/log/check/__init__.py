"""Looking for damage: a whole partition on request, closed segments from time to time."""
