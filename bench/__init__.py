"""Our broker beside Apache Kafka and kfake on the same machine: `make bench`. How to read it:
bench/README.md.
"""
