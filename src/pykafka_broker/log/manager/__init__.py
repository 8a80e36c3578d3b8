"""All logs of one broker: their folders, their moves between directories, and their periodic work."""
