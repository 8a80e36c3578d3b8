"""The broker: its parts, its start and stop, and its threads."""
