"""One segment of a log: its file and its indexes, how they are walked, rebuilt and replaced."""
