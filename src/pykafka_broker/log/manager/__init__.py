"""All logs of one broker: their folders, their moves between directories, and the work that is due."""
