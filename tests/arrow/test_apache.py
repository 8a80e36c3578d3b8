"""Topics of Apache Kafka are read from its broker and its folders: served, stopped and copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.arrow import ALL_COLUMNS, Ranges, read_folder, read_topic
from pykafka_broker.testing.apache.broker import ApacheBroker
from tests.arrow.cluster import Cluster, in_order, values_of

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(cluster: Cluster) -> None:
    """Batches of every codec, with headers and without, and transactions; the last one stays open."""
    producer = cluster.producer(transactional_id="writer", linger_ms=0)
    producer.init_transactions(60)
    for number in range(6):
        values = [b"%d " % each * each for each in range(200)]
        cluster.fill("orders", values, compression_type=CODECS[number % 5], batch_num_messages=20)
        producer.begin_transaction()
        for part in range(30):
            value = b"%s %d" % (b"aborted" if number % 2 else b"committed", part)
            producer.produce("orders", value, b"key", 0, headers=[("part", b"%d" % part), ("none", None)])
        producer.flush(60)
        if number == 5:
            return
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


@pytest.fixture(scope="module")
def apache(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> ApacheBroker:
    """A broker that has been filled and stopped; what its folder said while it ran was what it served."""
    with ApacheBroker(folder=tmp_path_factory.mktemp("apache")) as broker:
        cluster = Cluster(broker.address, broker.data_dir)
        cluster.create("orders", internal_segment_bytes="20000", index_interval_bytes="500")
        fill(cluster)
        for level in ("read_uncommitted", "read_committed"):
            for start in (0, 77, 700, 1_200):
                ranges = Ranges(start=start)
                cluster.both("orders", columns=ALL_COLUMNS, isolation_level=level, ranges=ranges)
        shutil.copytree(broker.data_dir / "orders-0", broker.folder / "copied" / "orders-0")
    return broker


def test_a_topic_of_apache_kafka_has_all_that_was_produced(apache: ApacheBroker) -> None:
    values = values_of(read_folder(apache.data_dir, "orders").read_all())

    assert [value for value in values if not value or not value.startswith((b"aborted", b"committed"))] == [
        b"%d " % each * each for _ in range(6) for each in range(200)
    ]
    assert sum(value is not None and value.startswith(b"aborted") for value in values) == 90


def test_committed_records_are_the_same_in_a_copy_without_indexes(apache: ApacheBroker) -> None:
    copied = apache.folder / "copied" / "orders-0"
    arguments: dict[str, Any] = {"columns": ALL_COLUMNS, "isolation_level": "read_committed"}
    whole = in_order(read_folder(copied, **arguments).read_all())
    for path in copied.iterdir():
        if path.suffix != ".log":
            path.unlink()

    values = values_of(whole)
    assert sum(value is not None and value.startswith(b"committed") for value in values) == 90
    assert not any(value is not None and value.startswith(b"aborted") for value in values)
    assert in_order(read_folder(copied, **arguments).read_all()) == whole


def test_a_broker_that_was_started_again_serves_what_its_folder_had(apache: ApacheBroker) -> None:
    before = in_order(read_folder(apache.data_dir, "orders", columns=ALL_COLUMNS).read_all())

    with ApacheBroker(folder=apache.folder) as again:
        after = read_topic("orders", again.address, columns=ALL_COLUMNS).read_all()

    assert in_order(after).slice(0, before.num_rows) == before
