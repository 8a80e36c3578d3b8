"""A Kafka broker in Python: the real wire protocol, a durable log in Apache Kafka's format, no JVM."""

__version__ = "0.1.0"
