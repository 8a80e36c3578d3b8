"""The operating system: descriptors, processes, signals, event loops; and what serves every package."""
