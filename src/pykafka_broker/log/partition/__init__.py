"""The log of one partition: what is appended to it, read from it and removed from it."""
