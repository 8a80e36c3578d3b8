"""Topics in tables of Delta and Iceberg and in folders of Parquet: all of them, once, and as they were."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pykafka_broker.arrow import KAFKA_COLUMNS, Json, RegistryAvro, read_topic
from pykafka_broker.arrow.core.values import Format
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.spark.archive import (
    Batch,
    Pace,
    Start,
    Table,
    Topics,
    archive_topics,
    compact,
    dead_letters,
)
from pykafka_broker.spark.archive.settings import TABLE_FORMATS, TableFormat
from pykafka_broker.spark.archive.tables import table_of
from pykafka_broker.spark.errors import SparkError
from tests.arrow.registry import served_registry
from tests.cli.conftest import run_command
from tests.spark.conftest import connector_jars
from tests.spark.kafka import NOON, Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON_MS = round(NOON.timestamp() * 1000)


class Job:
    """An archive job of one table, and what is in the table."""

    def __init__(self, spark: SparkSession, kafka: Kafka, folder: Path, table: Table) -> None:
        self.spark, self.kafka, self.table = spark, kafka, table
        self.checkpoint = str(folder / "checkpoint")
        self.batches: list[Batch] = []

    def run(
        self,
        *topics: str,
        start: Start = Start.EARLIEST,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
        decode: Mapping[str, Format] = MappingProxyType({}),
    ) -> int:
        """Archive what is there; how many records that were."""
        source = Topics(self.kafka.bootstrap, topics)
        archived = archive_topics(
            self.spark,
            source,
            self.table,
            self.checkpoint,
            start=start,
            pace=pace,
            decode=decode,
            report=self.batches.append,
        )
        return archived.records

    def refusal(
        self,
        *topics: str,
        start: Start = Start.EARLIEST,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
    ) -> str:
        with pytest.raises(SparkError) as refused:
            self.run(*topics, start=start, pace=pace)
        return str(refused.value)

    def rows(self) -> list[tuple[Any, ...]]:
        """The records of the table, as Arrow has them, by place."""
        frame = table_of(self.spark, self.table).rows().select(*KAFKA_COLUMNS)
        return by_place(frame.toArrow())

    def decoded(self) -> list[tuple[Any, ...]]:
        """What values became, by offset: the fields, and whether there is a reason."""
        frame = table_of(self.spark, self.table).rows().orderBy("offset")
        found = frame.select("value_data", "value_error").toArrow().to_pylist()
        return [(row["value_data"], row["value_error"] is not None) for row in found]

    def topic_ids(self) -> Counter[tuple[str, str]]:
        found = table_of(self.spark, self.table).rows().select("topic", "topic_id").collect()
        return Counter((row.topic, row.topic_id) for row in found)


def by_place(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of the kafka format, by topic, partition and offset, whatever the unit of their timestamps."""
    columns = [
        (table[name].cast(pa.timestamp("ms", "UTC")) if name == "timestamp" else table[name]).to_pylist()
        for name in KAFKA_COLUMNS
    ]
    return sorted(zip(*columns, strict=True), key=lambda row: row[2:5])


def in_topic(kafka: Kafka, *topics: str) -> list[tuple[Any, ...]]:
    """The records that a consumer of committed ones gets, by place."""
    found = [
        read_topic(topic, kafka.bootstrap, isolation_level="read_committed").read_all() for topic in topics
    ]
    return by_place(pa.concat_tables(found))


def produce_batch(
    kafka: Kafka, topic: str, records: Iterable[tuple[int, bytes | None, bytes | None, list[Any]]]
) -> None:
    """Records with any timestamp, as no client sends them: (timestamp, key, value, headers)."""
    data = PartitionProduceData(index=0, records=build_batch(records))
    topic_data = TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=[topic_data])
    with Client(kafka.bootstrap) as client:
        answer = client.send(request, client.leaders(topic)[0], version=9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def fill_with_all_kinds(kafka: Kafka, topic: str) -> None:
    """Null and empty keys, values and headers; times before 1970; aborted transactions; each codec."""
    produce_batch(
        kafka,
        topic,
        [
            (-1, None, None, []),
            (-1, b"", b"", [("", b""), ("twice", None), ("twice", b"\0\xff")]),
            (0, b"\xff\0", b"first of 1970", []),
            (NOON_MS + 1, None, b"a millisecond after noon", [("\u00fc", "\u00fc".encode())]),
        ],
    )
    for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd")):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec})
        for count in range(20):
            producer.produce(topic, f"{codec} {count}" * 5, f"k{count}", partition=number % 2)
        assert producer.flush(30) == 0
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, f"in a transaction: {end.__name__}", partition=1)
        producer.flush(30)
        end(30)


@pytest.fixture(params=TABLE_FORMATS)
def job(request: pytest.FixtureRequest, spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Job:
    return new_job(spark, kafka, tmp_path, request.param)


def new_job(spark: SparkSession, kafka: Kafka, folder: Path, format_: TableFormat) -> Job:
    name = (
        f"lake.raw.{kafka.new_name('t').replace('-', '_')}" if format_ == "iceberg" else str(folder / "table")
    )
    return Job(spark, kafka, folder, Table(format_, name))


def test_a_table_has_every_record_once_as_it_was_over_several_runs(job: Job) -> None:
    kafka = job.kafka
    topic, other = kafka.topic(2, retention_ms="-1"), kafka.topic(retention_ms="-1")
    fill_with_all_kinds(kafka, topic)
    kafka.send(other, ["x"])
    first = in_topic(kafka, topic, other)
    assert job.run(topic, other) == len(first)
    assert job.rows() == first
    assert job.run(topic, other) == 0
    kafka.send(topic, ["y", "z"], partition=1)
    assert job.run(topic, other, pace=Pace(batch_records=1)) == 2
    assert job.rows() == in_topic(kafka, topic, other)
    assert {name for name, _ in job.topic_ids()} == {topic, other}
    assert len(job.batches) >= 3
    assert sum(batch.bytes for batch in job.batches) == sum(
        len(key or b"")
        + len(value or b"")
        + sum(len(h["key"].encode()) + len(h["value"] or b"") for h in headers or ())
        for key, value, *_, headers in job.rows()
    )
    assert job.batches[-1].lag == 0


def test_a_running_job_stops_when_its_topic_is_created_anew(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    job = new_job(spark, kafka, tmp_path, "delta")
    topic = kafka.topic()
    kafka.send(topic, range(5))
    refusals: list[str] = []

    def run() -> None:
        refusals.append(job.refusal(topic, pace=Pace(is_endless=True, every_s=0.1)))

    running = threading.Thread(target=run)
    running.start()
    kafka.eventually(lambda: bool(job.batches))
    kafka.delete(topic)
    kafka.create(topic)
    kafka.send(topic, range(20))
    running.join(90)
    [refusal] = refusals
    assert "created anew" in refusal


#: Rows of a batch of ten that Spark is stopped in: it may be in the table already, and is not reported.
UNREPORTED = (0, 10)


def test_a_job_that_is_told_to_end_commits_its_batch_first(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    job = new_job(spark, kafka, tmp_path, "delta")
    topic = kafka.topic()
    kafka.send(topic, range(400))
    pace = Pace(is_endless=True, every_s=0.0, batch_records=10, until=lambda: bool(job.batches))
    archived = job.run(topic, pace=pace)
    assert 0 < archived < 400
    assert archived == sum(batch.records for batch in job.batches)
    assert len(job.rows()) - archived in UNREPORTED
    assert 400 - archived - job.run(topic) in UNREPORTED
    assert job.rows() == in_topic(kafka, topic)


#: A session that is short: compiling well would cost more than it saves.
SHORT = (
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.pollingDelay=10ms",
)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_command_ends_after_its_batch_at_a_signal(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    job = new_job(spark, kafka, tmp_path, "parquet")
    topic = kafka.topic()
    kafka.send(topic, range(400))
    command = [sys.executable, "-m", "pykafka_broker", "spark", "archive", topic, "--to", job.table.name]
    command += ["--format", "parquet", "--checkpoint", job.checkpoint, "-b", kafka.bootstrap, "--json"]
    command += ["--follow", "--every", "0", "--batch-records", "10"]
    command += [
        "--jars",
        str(connector_jars()),
        "--master",
        "local[1]",
        *(f"--conf={each}" for each in SHORT),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == status, err
    assert "Traceback" not in err
    archived = sum(json.loads(line)["records"] for line in (first + out).splitlines())
    assert 0 < archived < 400
    assert len(job.rows()) - archived in UNREPORTED
    assert err.splitlines()[-1].startswith(f"{archived} records ")
    assert 400 - archived - job.run(topic) in UNREPORTED
    assert job.rows() == in_topic(kafka, topic)


def test_a_job_refuses_what_would_lose_or_repeat_records(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    job = new_job(spark, kafka, tmp_path, "delta")
    topic = kafka.topic()
    kafka.send(topic, range(5))
    assert job.run(topic) == 5
    shutil.copytree(job.checkpoint, tmp_path / "backup")
    kafka.send(topic, range(5, 10))
    assert job.run(topic) == 5

    # An older checkpoint of the same query.
    shutil.rmtree(job.checkpoint)
    shutil.copytree(tmp_path / "backup", job.checkpoint)
    assert "is older than the table: it ends at offset 5" in job.refusal(topic)

    # No checkpoint.
    shutil.rmtree(job.checkpoint)
    kafka.send(topic, range(10, 12))
    assert f"has records of {topic}-0 up to offset 9 already" in job.refusal(topic)
    assert job.run(topic, start=Start.BEHIND_TABLE) == 2
    assert job.rows() == in_topic(kafka, topic)

    # Records that are gone.
    kafka.send(topic, range(12, 20))
    kafka.delete_records(topic, 15)
    assert f"{topic}-0: offsets 12 to 14 were removed before they were archived." in job.refusal(topic)
    shutil.rmtree(job.checkpoint)
    assert "To go on without them" in job.refusal(topic, start=Start.BEHIND_TABLE)
    assert job.run(topic, start=Start.BEHIND_TABLE_WITH_GAPS) == 5

    # Another topic of the same name: the repair lets the job go on, under the new id.
    [(_, topic_id)] = job.topic_ids()
    kafka.delete(topic)
    kafka.create(topic)
    kafka.send(topic, range(30))
    assert f"{topic}-0: the topic was deleted and created anew since the job has read it." in job.refusal(
        topic
    )
    repaired = run_command("spark", "checkpoint", "repair", job.checkpoint, "--yes", "-b", kafka.bootstrap)
    assert repaired.status == 0, repaired.err
    assert job.run(topic) == 30
    counts = job.topic_ids()
    assert counts.pop((topic, topic_id)) == 17
    assert list(counts.values()) == [30]

    # Another table.
    shutil.rmtree(tmp_path / "table")
    assert "is not there any more" in job.refusal(topic)
    assert job.refusal("missing") == "Topic 'missing' does not exist."


LINES = pa.list_(pa.struct([("price", pa.float64())]))
#: A schema, then one with another field here and there, then one that has lost one.
FIRST = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ms", "UTC")), ("lines", LINES)])
SECOND = pa.schema(
    [
        ("id", pa.int64()),
        ("lines", pa.list_(pa.struct([("price", pa.float64()), ("count", pa.int64())]))),
        ("note", pa.string()),
    ]
)


@pytest.mark.parametrize("format_", ["iceberg", "parquet"])
def test_json_becomes_columns_that_grow_with_its_schema(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, format_: TableFormat
) -> None:
    job = new_job(spark, kafka, tmp_path, format_)
    topic = kafka.topic()
    kafka.send(topic, ['{"id": 1, "at": "2026-01-01T00:00:00Z", "lines": [{"price": 2.5}]}', '{"id": "x"}'])
    kafka.send(topic, [None], key=b"k")
    assert job.run(topic, decode={"value": Json(FIRST)}) == 3
    kafka.send(topic, ['{"id": 2, "lines": [{"price": 1, "count": 3}], "note": "n"}', "no JSON"])
    assert job.run(topic, decode={"value": Json(SECOND)}) == 2
    kafka.send(topic, ["not decoded"])
    assert job.run(topic) == 1
    assert job.rows() == in_topic(kafka, topic)
    new_year = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    lines = [{"price": 2.5, "count": None}]
    expected: list[tuple[dict[str, Any] | None, bool]] = [
        ({"id": 1, "at": new_year, "lines": lines, "note": None}, False),
        (None, True),
        (None, False),
        ({"id": 2, "at": None, "lines": [{"price": 1.0, "count": 3}], "note": "n"}, False),
        (None, True),
        (None, False),
    ]
    assert job.decoded() == expected
    letters = dead_letters(table_of(spark, job.table).rows()).orderBy("offset").collect()
    assert [(letter.offset, bytes(letter.value)) for letter in letters] == [
        (1, b'{"id": "x"}'),
        (4, b"no JSON"),
    ]
    assert all(letter.reason.startswith("value: JSON parse error") for letter in letters)

    tomorrow = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1)
    if format_ == "parquet":
        with pytest.raises(SparkError, match="cannot be replaced in one step"):
            compact(spark, job.table, before=tomorrow)
        return
    assert compact(spark, job.table, before=tomorrow) == (3, 1)
    assert job.rows() == in_topic(kafka, topic)
    wrong = Json(pa.schema([("id", pa.string())]))
    with pytest.raises(SparkError, match=r"value_data\.id is bigint in the table, and string in the schema"):
        job.run(topic, decode={"value": wrong})


def test_avro_of_a_registry_becomes_columns_and_small_files_large_ones(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    job = new_job(spark, kafka, tmp_path, "delta")
    topic = kafka.topic()
    order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    note = {"name": "note", "type": ["null", "string"], "default": None}
    with served_registry() as registry:
        registry.add(f"{topic}-value", 1, order)
        decode = {"value": RegistryAvro(registry.url)}
        send_bytes(kafka, topic, [b"\0\0\0\0\1\x02", b"\0\0\0\0\x63\x02", b"{}"])
        assert job.run(topic, decode=decode) == 3
        registry.add(f"{topic}-value", 2, {**order, "fields": [*order["fields"], note]})
        send_bytes(kafka, topic, [b"\0\0\0\0\1\x04", b"\0\0\0\0\2\x06\x02\x02n"])
        assert job.run(topic, decode=decode) == 2
    expected = [
        ({"id": 1, "note": None}, False),
        (None, True),
        (None, True),
        ({"id": 2, "note": None}, False),
        ({"id": 3, "note": "n"}, False),
    ]
    assert job.decoded() == expected

    today = dt.datetime.now(dt.UTC).date()
    assert compact(spark, job.table, before=today).removed == 0
    compacted = compact(spark, job.table, before=today + dt.timedelta(days=1))
    assert compacted.removed > compacted.added == 1
    assert job.decoded() == expected
    assert job.rows() == in_topic(kafka, topic)
    assert job.run(topic) == 0


def send_bytes(kafka: Kafka, topic: str, values: Iterable[bytes]) -> None:
    produce_batch(kafka, topic, [(NOON_MS, None, value, []) for value in values])
