"""The partitions this node holds: which it leads, what is committed, where their logs are."""
