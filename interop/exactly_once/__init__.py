"""Exactly-once with other people's programs, while they and the broker are killed: output equals input.

`copying.py` has Apache Kafka's transactional copier with the verifiable clients around it, `streams.py` Kafka
Streams' own test programs. Each story has a broker of its own, which it kills with `kill -9`.
"""
