"""Read, work, write, each record exactly once: `python examples/transactions.py [HOST:PORT]`.

The records that are written and the offsets of those that were read are one transaction. The first attempt
fails when it has written everything: readers of committed records never see its records, and the second
attempt reads the same orders again.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer


def consumer_of(bootstrap: str, topic: str, group: str, isolation: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def write_invoices(bootstrap: str, orders: int, *, fails: bool = False) -> None:
    """Write an invoice for each of the next orders, or nothing."""
    consumer = consumer_of(bootstrap, "orders", "invoicing", "read_committed")
    # The producer ends what an earlier one with this id has left open.
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "invoicing"})
    producer.init_transactions()
    producer.begin_transaction()
    try:
        for order in consumer.consume(orders, timeout=60):
            producer.produce("invoices", b"invoice for " + (order.value() or b""))
        producer.flush()
        if fails:
            raise RuntimeError("out of paper")
        read_up_to = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(read_up_to, consumer.consumer_group_metadata())
        producer.commit_transaction()
    except RuntimeError:
        producer.abort_transaction()
    finally:
        consumer.close()


def invoices(bootstrap: str, count: int, isolation: str) -> list[str]:
    consumer = consumer_of(bootstrap, "invoices", isolation, isolation)
    try:
        return [(invoice.value() or b"").decode() for invoice in consumer.consume(count, timeout=60)]
    finally:
        consumer.close()


def main(bootstrap: str = "127.0.0.1:9092") -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for order in ("tea", "cups"):
        producer.produce("orders", order)
    producer.flush()
    write_invoices(bootstrap, 2, fails=True)
    write_invoices(bootstrap, 2)
    print(invoices(bootstrap, 2, "read_committed"))  # ['invoice for tea', 'invoice for cups']
    print(len(invoices(bootstrap, 4, "read_uncommitted")))  # 4


if __name__ == "__main__":
    main(*sys.argv[1:])
