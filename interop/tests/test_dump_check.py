"""A data folder written by our broker opens in Apache Kafka's own dump tool without a complaint, record for
record.
"""

from __future__ import annotations

import re
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from interop.dump_check import check
from pykafka_broker.testing.processes import PykafkaBroker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_every_file_a_busy_broker_leaves_is_read_by_apache_as_by_us(kafka_jars: Path, tmp_path: Path) -> None:
    with PykafkaBroker({"num.partitions": "2", "offsets.topic.num.partitions": "4"}, tmp_path) as broker:
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
        member = Consumer(
            {"bootstrap.servers": broker.address, "group.id": "members", "group.protocol": "consumer"}
        )
        member.subscribe(["codec-zstd"])
        while not member.assignment():
            member.poll(0.1)
        member.commit(offsets=[TopicPartition("codec-zstd", 0, 8)], asynchronous=False)
        member.close()
        writer = Producer({"bootstrap.servers": broker.address, "transactional.id": "writer"})
        writer.init_transactions(30)
        for number in range(6):
            writer.begin_transaction()
            writer.produce("transactions", b"%d" % number, partition=0)
            assert writer.flush(30) == 0
            writer.commit_transaction(30) if number % 2 else writer.abort_transaction(30)
        broker.kill()
        broker.start()
        broker.stop()

        reported: list[str] = []
        assert check(broker.data_dir, reported.append) == []

    assert len([line for line in reported if line.startswith("dump") and line.endswith(": ok")]) == 5
    found = re.fullmatch(r"\d+ segments, (\d+) records: ok", reported[0])
    assert found is not None, reported
    assert int(found[1]) > 600 * len(CODECS)
