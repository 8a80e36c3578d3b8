"""The log of one partition: appending to it, reading from it, and removing records from it."""
