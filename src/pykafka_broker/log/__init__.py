"""Storage of partitions: one log each, as Kafka's files, and the manager of all of them (FORMAT.md)."""
