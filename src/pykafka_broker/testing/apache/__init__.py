"""Apache Kafka 4.3.1 as a peer: its nodes as processes, its command-line tools, its classes.

    from pykafka_broker.testing.apache.broker import ApacheBroker
    from pykafka_broker.testing.apache.tools import run_tool

    with ApacheBroker() as broker:
        print(run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.address, "--list"))

Needs Java 17, and Maven for the jars, which come from Maven Central on first use (`jars.py`).
"""
