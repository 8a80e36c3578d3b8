"""KRaft: the replicated log of cluster metadata, its elections, its files."""
