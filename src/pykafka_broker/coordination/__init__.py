"""The coordinators on this node: services over shards, and the topics that hold their state."""
