"""The operating system: descriptors, processes, signals, event loops."""
