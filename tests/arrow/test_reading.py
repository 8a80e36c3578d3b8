"""Topics are read from a broker, and from its data directory while it runs: the same rows."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

import pykafka_broker.arrow
from pykafka_broker.arrow import ALL_COLUMNS, Limits, Ranges, read_folder, read_topic
from pykafka_broker.broker.broker import Broker
from pykafka_broker.config.sources import load_config
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.processes import PykafkaBroker
from tests.arrow.cluster import NOW, Cluster, values_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data_dir = tmp_path_factory.mktemp("data")
    with Broker(load_config(data_dir=data_dir, listen="127.0.0.1:0")) as broker:
        yield Cluster(broker.bootstrap_servers, data_dir)


# -- rows
# -------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_of_any_codec_has_the_rows_that_were_produced(cluster: Cluster, codec: str) -> None:
    topic = cluster.create(f"codec-{codec}")
    values: list[bytes | None] = [b"value %d " % number * (number % 40) for number in range(3_000)]
    cluster.fill(topic, values, compression_type=codec, batch_num_messages=400)

    table = cluster.both(topic)

    assert values_of(table) == values
    assert table.column("offset").to_pylist() == list(range(3_000))


def test_a_row_has_all_that_kafka_knows_of_a_record(cluster: Cluster) -> None:
    topic = cluster.create("columns")
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
    producer = cluster.producer(enable_idempotence=True)
    producer.produce(topic, b"value", b"key", 0, timestamp=NOW, headers=headers)
    producer.produce(topic, None, None, 0, timestamp=NOW + 1)
    producer.flush(60)

    first, second = cluster.both(topic, columns=ALL_COLUMNS).to_pylist()

    assert first.pop("producerId") == second.pop("producerId") >= 0
    assert first == {
        "key": b"key",
        "value": b"value",
        "topic": "columns",
        "partition": 0,
        "offset": 0,
        "timestamp": datetime.fromtimestamp(NOW / 1000, UTC),
        "timestampType": 0,
        "headers": [
            {"key": "trace", "value": b"\x00\xff"},
            {"key": "trace", "value": None},
            {"key": "empty", "value": b""},
        ],
        "producerEpoch": 0,
        "leaderEpoch": 0,
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


def test_the_time_of_the_append_is_the_time_of_its_records(cluster: Cluster) -> None:
    topic = cluster.create("append-time", message_timestamp_type="LogAppendTime")
    cluster.fill(topic, [b"a", b"b"])

    rows = cluster.both(topic, columns=["partition", "offset", "timestamp", "timestampType"]).to_pylist()

    assert {row["timestampType"] for row in rows} == {1}
    assert all(row["timestamp"].timestamp() * 1000 > NOW + 1000 for row in rows)


def test_partitions_are_read_together(cluster: Cluster) -> None:
    topic = cluster.create("many-partitions", partitions=7)
    producer = cluster.producer()
    for number in range(500):
        producer.produce(topic, b"%d" % number, b"%d" % (number % 50))
    producer.flush(60)

    table = cluster.both(topic)

    assert sorted(map(int, filter(None, values_of(table)))) == list(range(500))
    assert table.column("partition").unique().to_pylist() == sorted(
        set(table.column("partition").to_pylist())
    )


# -- ranges
# ---------


def test_rows_are_read_between_offsets_and_times_and_of_chosen_partitions(cluster: Cluster) -> None:
    topic = cluster.create("ranges", partitions=2)
    cluster.fill(topic, [b"%d" % number for number in range(50)], batch_num_messages=7)

    def found(**ranges: Any) -> list[int]:
        return [int(value or b"-1") for value in values_of(cluster.both(topic, ranges=Ranges(**ranges)))]

    def second(number: int) -> datetime:
        return datetime.fromtimestamp(NOW / 1000 + number, UTC)

    assert found() == list(range(50))
    assert found(start={0: 3}, end={0: 9}) == [3, 4, 5, 6, 7, 8]
    assert found(start=second(40), end=second(45)) == [40, 41, 42, 43, 44]
    assert found(start=second(1_000)) == []
    assert found(partitions=[1]) == []


def test_batches_above_every_limit_are_read_nevertheless(cluster: Cluster) -> None:
    topic = cluster.create("large")
    cluster.fill(topic, [b"v" * 5_000] * 20, batch_num_messages=4)

    table = cluster.both(topic, limits=Limits(fetch_bytes=1, batch_bytes=1))

    assert values_of(table) == [b"v" * 5_000] * 20
    assert table.column("value").num_chunks == 20


def test_a_topic_that_is_created_again_meanwhile_is_another_one(cluster: Cluster) -> None:
    topic = cluster.create("again")
    cluster.fill(topic, [b"v" * 1_000] * 100, batch_num_messages=10)
    reader = read_topic(topic, cluster.address, limits=Limits(fetch_bytes=20_000, batch_bytes=10_000))
    reader.read_next_batch()
    cluster.delete(topic)
    with pytest.raises(KafkaError, match=r"does not exist|was deleted and created again"):
        reader.read_all()


def test_what_is_not_there_is_named(cluster: Cluster) -> None:
    topic = cluster.create("missing")
    with pytest.raises(KafkaError, match="Topic 'missinq' does not exist"):
        read_topic("missinq", cluster.address)
    with pytest.raises(KafkaError, match="missing-0 has no offset 5"):
        read_topic(topic, cluster.address, ranges=Ranges(start=5))
    with pytest.raises(KafkaError, match="no partition 3"):
        read_topic(topic, cluster.address, ranges=Ranges(partitions=[3]))
    with pytest.raises(ValueError, match="'offsets' is none of the columns"):
        read_topic(topic, cluster.address, columns=["offsets"])
    with pytest.raises(ValueError, match="neither read_uncommitted nor read_committed"):
        read_topic(topic, cluster.address, isolation_level="committed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="There is no folder"):
        read_folder(cluster.data_dir / "nothing")


def test_records_that_are_deleted_while_they_are_read_are_missed_loudly(cluster: Cluster) -> None:
    topic = cluster.create("deleted")
    cluster.fill(topic, [b"v" * 1_000] * 100, batch_num_messages=10)
    reader = read_topic(topic, cluster.address, limits=Limits(fetch_bytes=20_000, batch_bytes=10_000))
    reader.read_next_batch()
    cluster.delete_records(TopicPartition(topic, 0, 90))

    with pytest.raises(KafkaError, match=r"deleted-0 has no offset .*it begins at 90") as missed:
        reader.read_all()
    assert missed.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


# -- transactions
# ---------------


def test_committed_records_are_those_of_transactions_that_were_committed(cluster: Cluster) -> None:
    topic = cluster.create("transactions")
    producer = cluster.producer(transactional_id="writer")
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(topic, b"%d.%d" % (number, part), partition=0)
        producer.flush(60)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(60)

    everything = cluster.both(topic)
    committed = cluster.both(topic, isolation_level="read_committed")
    producer.abort_transaction(60)

    assert values_of(everything) == [
        *(b"%d.%d" % (number, part) for number in range(6) for part in range(3)),
        b"open",
    ]
    assert values_of(committed) == [b"%d.%d" % (number, part) for number in (0, 2, 4) for part in range(3)]


# -- following
# ------------


@pytest.mark.parametrize("source", ["topic", "folder"])
def test_a_reader_that_follows_has_what_is_written_later(cluster: Cluster, source: str) -> None:
    topic = cluster.create(f"followed-{source}", partitions=2)
    arguments: dict[str, Any] = {
        "columns": ["value"],
        "follow": True,
        "ranges": Ranges(end={0: 9}, partitions=[0]),
        "limits": Limits(wait_ms=20),
    }
    if source == "topic":
        reader = read_topic(topic, cluster.address, **arguments)
    else:
        reader = read_folder(cluster.data_dir, topic, **arguments)
    found: list[bytes | None] = []
    for number in range(3):
        cluster.fill(topic, [b"%d.%d" % (number, part) for part in range(3)])
        while len(found) < 3 * (number + 1):
            found += reader.read_next_batch().column(0).to_pylist()

    assert found == [b"%d.%d" % (number, part) for number in range(3) for part in range(3)]
    with pytest.raises(StopIteration):
        reader.read_next_batch()


def test_a_reader_outlives_a_restart_of_its_broker(tmp_path: Path) -> None:
    with PykafkaBroker(folder=tmp_path) as broker:
        cluster = Cluster(broker.address, broker.data_dir)
        topic = cluster.create("restarted")
        cluster.fill(topic, [b"%d" % number * 500 for number in range(200)], batch_num_messages=5)
        reader = read_topic(topic, broker.address, limits=Limits(fetch_bytes=10_000, batch_bytes=5_000))
        tables = [pa.Table.from_batches([reader.read_next_batch()])]
        broker.kill()
        starter = threading.Timer(0.5, broker.start)
        starter.start()
        tables.append(reader.read_all())
        starter.join()

    assert pa.concat_tables(tables).column("offset").to_pylist() == list(range(200))


def test_a_broker_that_stays_away_ends_reading(tmp_path: Path) -> None:
    with PykafkaBroker(folder=tmp_path) as broker:
        cluster = Cluster(broker.address, broker.data_dir)
        topic = cluster.create("away")
        cluster.fill(topic, [b"v" * 500] * 200, batch_num_messages=5)
        limits = Limits(fetch_bytes=10_000, batch_bytes=5_000, timeout_s=0.5)
        reader = read_topic(topic, broker.address, limits=limits)
        reader.read_next_batch()
        broker.kill()
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            reader.read_all()

    assert time.monotonic() - began < 60


# -- the package
# --------------


def test_without_pyarrow_one_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None; import pykafka_broker.arrow as arrow\n"
        "try: arrow.read_topic\n"
        "except ImportError as error: print(error)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed == "pykafka_broker.arrow needs numpy and pyarrow: python3 -m pip install numpy pyarrow\n"


def test_the_package_imports_neither_numpy_nor_pyarrow_before_it_is_used() -> None:
    program = "import sys, pykafka_broker.arrow; print({'numpy', 'pyarrow'} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed == "set()\n"


def test_everything_listed_is_there() -> None:
    assert [name for name in dir(pykafka_broker.arrow) if not hasattr(pykafka_broker.arrow, name)] == []
