"""A data folder written by our broker opens in Apache Kafka's own dump tool without a complaint, record for
record.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from interop.brokers import OurBroker
from interop.dump_check import check

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_every_file_a_busy_broker_leaves_is_read_by_apache_as_by_us(kafka_jars: Path, tmp_path: Path) -> None:
    with OurBroker({"num.partitions": "2", "offsets.topic.num.partitions": "4"}, tmp_path) as broker:
        for codec in CODECS:
            producer = Producer(
                {
                    "bootstrap.servers": broker.address,
                    "compression.type": codec,
                    "enable.idempotence": codec != "none",
                    "batch.num.messages": 50,
                    "linger.ms": 1,
                }
            )
            for number in range(600):
                producer.produce(
                    f"codec-{codec}",
                    value=None if number % 50 == 0 else b"value-%d" % number * (number % 7),
                    key=None if number % 3 == 0 else b"key-%d" % number,
                    headers=[("n", b"%d" % number), ("empty", None)],
                    timestamp=1_700_000_000_000 + number,
                )
            assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
        consumer.commit(offsets=[TopicPartition("codec-zstd", 0, 7, metadata="here")], asynchronous=False)
        consumer.close()
        broker.kill()
        broker.start()
        broker.stop()

        reported: list[str] = []
        assert check(broker.data_dir, reported.append) == []

    assert any(f"{600 * len(CODECS) + 1} records: ok" in line for line in reported), reported
