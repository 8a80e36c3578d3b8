"""Other people's clients and tools against our broker (and, as the oracle, against Apache Kafka itself)."""
