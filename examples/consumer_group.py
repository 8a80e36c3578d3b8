"""A consumer group that does each thing at least once: `python examples/consumer_group.py [HOST:PORT]`.

A scheduler starts this job, which does what is new and ends. The job commits an offset when it is done with
the record, so that after a killed job the next one repeats one record at most. Several jobs at once share the
partitions of the topic.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer


def send_new(bootstrap: str) -> list[str]:
    """Send the e-mails that were not sent yet, and return them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "mailer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["emails"])
    sent: list[str] = []
    at_their_end: set[int | None] = set()
    try:
        while not at_their_end or len(at_their_end) < len(consumer.assignment()):
            message = consumer.poll(60)
            if message is None:
                raise TimeoutError("the broker says nothing")
            if (error := message.error()) is None:
                sent.append((message.value() or b"").decode())  # here it would be sent
                consumer.commit(message=message, asynchronous=False)
            elif error.code() == KafkaError._PARTITION_EOF:
                at_their_end.add(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return sent


def main(bootstrap: str = "127.0.0.1:9092") -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in ("alice", "bob"):
        producer.produce("emails", f"Hello {name}")
    producer.flush()
    print(send_new(bootstrap))  # ['Hello alice', 'Hello bob']
    print(send_new(bootstrap))  # []


if __name__ == "__main__":
    main(*sys.argv[1:])
