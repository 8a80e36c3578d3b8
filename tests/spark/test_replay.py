"""Replays: what was archived is written again, each record once, as it was."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pykafka_broker.arrow import read_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import committed_offsets
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.spark.archive import Table, Topics, archive_topics
from pykafka_broker.spark.archive.tables import table_of
from pykafka_broker.spark.replay import OffsetRange, ReplayError, Settings, Target, Window, replay
from pykafka_broker.spark.replay.job import Preparation
from pykafka_broker.testing.processes import PykafkaBroker
from tests.spark.conftest import PROPERTIES
from tests.spark.kafka import NOON, Kafka
from tests.spark.test_archive import fill_with_all_kinds, in_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CREATE, CHANGE = Preparation.CREATE, Preparation.CHANGE
#: Column numbers of `in_topic`.
TOPIC, PARTITION, OFFSET = 2, 3, 4


def topic_rows(spark: SparkSession, kafka: Kafka, *topics: str) -> DataFrame:
    """The committed records of topics, as Spark's own source has them."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", ",".join(topics))
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )


def to(kafka: Kafka, source: str, target: str, preparation: Preparation = CREATE, *accepted: str) -> Target:
    return Target(kafka.bootstrap, {source: target}, preparation, accepted)


def records(kafka: Kafka, topic: str) -> list[tuple[Any, ...]]:
    """What a consumer gets, partition after partition: all but the topic's name and the offsets."""
    return [
        tuple(value for column, value in enumerate(row) if column not in (TOPIC, OFFSET))
        for row in in_topic(kafka, topic)
    ]


def values(kafka: Kafka, topic: str) -> list[str]:
    return [row[1].decode() for row in in_topic(kafka, topic)]


@pytest.mark.acknowledged
@pytest.mark.gate("Spark runs the jobs of archive and replay")
def test_a_topic_that_is_archived_and_replayed_is_the_same_record_by_record(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, again = kafka.topic(partitions=3, retention_ms="-1"), kafka.new_name("again")
    fill_with_all_kinds(kafka, topic)
    for number in range(60):
        key = f"key {number % 7}".encode()
        kafka.send(topic, [number], partition=1 + number % 2, key=key, headers=[("number", b"%d" % number)])
    table = Table("delta", str(tmp_path / "table"))
    archive_topics(spark, Topics(kafka.bootstrap, (topic,)), table, str(tmp_path / "checkpoint"))
    small = Settings(batch_bytes=2_000, transaction_bytes=4_000, transaction_records=7)
    archived = table_of(spark, table).rows()
    done = replay(archived, to(kafka, topic, again), settings=small)
    assert records(kafka, again) == records(kafka, topic)
    assert done.records == len(records(kafka, topic))
    assert (again, "retention.ms", "-1") in done.changes
    assert sum(partition.transactions for partition in done.partitions) > 8

    once_more = replay(archived, to(kafka, topic, again), settings=small)
    assert (once_more.records, once_more.changes, once_more.found) == (0, (), done.records)
    assert records(kafka, again) == records(kafka, topic)


def test_a_replay_goes_on_where_the_last_run_ended(spark: SparkSession, kafka: Kafka) -> None:
    topic, again = kafka.topic(partitions=2), kafka.new_name("again")
    kafka.send(topic, ["a", "b"], partition=0)
    rows, target = topic_rows(spark, kafka, topic), to(kafka, topic, again)._replace(partitions=2)
    assert replay(rows, target).records == 2
    kafka.send(topic, ["c"], partition=0)
    kafka.send(topic, ["d"], partition=1)
    assert replay(rows, target).records == 2
    assert values(kafka, again) == ["a", "b", "c", "d"]
    [group] = kafka.admin.list_group_offsets(f"replay-to-{again}").values()
    assert {place.partition: one.offset for place, one in group.items()} == {0: 3, 1: 1}


def test_rows_that_a_table_has_twice_are_written_once(spark: SparkSession, kafka: Kafka) -> None:
    topic, again = kafka.topic(), kafka.new_name("again")
    kafka.send(topic, range(20))
    rows = topic_rows(spark, kafka, topic)
    done = replay(rows.union(rows.where("offset < 5")), to(kafka, topic, again))
    assert [partition.duplicates for partition in done.partitions] == [5]
    assert values(kafka, again) == [str(number) for number in range(20)]


def test_a_window_of_offsets_times_and_partitions_is_replayed(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    for hour in range(4):
        at = round((NOON + dt.timedelta(hours=hour)).timestamp() * 1000)
        for partition in range(2):
            kafka.send(topic, [f"{partition} at {hour}"], partition=partition, timestamp_ms=at)
    rows = topic_rows(spark, kafka, topic)

    def replayed(window: Window) -> list[str]:
        again = kafka.new_name("again")
        replay(rows, to(kafka, topic, again), window=window)
        return values(kafka, again)

    an_hour = dt.timedelta(hours=1)
    window = Window(since=NOON + an_hour, until=NOON + 3 * an_hour, partitions=[1])
    assert replayed(window) == ["1 at 1", "1 at 2"]
    assert replayed(Window(offsets=[OffsetRange(topic, 0, 1, 3)])) == ["0 at 1", "0 at 2"]
    assert len(replayed(Window(first_day=NOON.date(), last_day=NOON.date()))) == 8


def test_a_topic_that_would_not_keep_the_records_is_refused_or_changed(
    spark: SparkSession, kafka: Kafka
) -> None:
    topic = kafka.topic(retention_ms="-1")
    kafka.send(topic, ["old"], timestamp_ms=1_000)
    rows, again = topic_rows(spark, kafka, topic), kafka.topic()
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    with pytest.raises(ReplayError, match=r"^The source is format\('kafka'\) without .* aborted"):
        replay(
            spark.read.format("kafka").options(**options).load().where("offset > 0"), to(kafka, topic, again)
        )
    with pytest.raises(
        ReplayError, match=r"^Topic 'nowhere' does not exist: create it, or let the replay do"
    ):
        replay(rows, to(kafka, topic, "nowhere", Preparation.REFUSE))
    with pytest.raises(ReplayError) as refused:
        replay(rows, to(kafka, topic, again))
    assert str(refused.value) == (
        f"Topic '{again}' has retention.ms=604800000, and would delete what is older: the oldest record is "
        "of 1970-01-01 00:00:01 UTC. retention.ms=-1 would fit."
    )
    done = replay(rows, to(kafka, topic, again, CHANGE))
    assert done.changes == ((again, "retention.ms", "-1"),)
    assert values(kafka, again) == ["old"]


def test_records_and_progress_of_others_are_not_written_over(spark: SparkSession, kafka: Kafka) -> None:
    topic, other, again = kafka.topic(), kafka.topic(), kafka.topic()
    for name in (topic, other, again):
        kafka.send(name, [f"of {name}"])
    with pytest.raises(ReplayError, match="holds 1 offsets already, and group 'replay-to-"):
        replay(topic_rows(spark, kafka, topic), to(kafka, topic, again))
    replay(topic_rows(spark, kafka, topic), to(kafka, topic, again, CREATE, "records"))
    assert values(kafka, again) == [f"of {again}", f"of {topic}"]
    with pytest.raises(ReplayError, match=f"is of records of {topic}-0, not of {other}-0"):
        replay(topic_rows(spark, kafka, other), to(kafka, other, again))


def test_what_a_task_is_refused_is_one_sentence(spark: SparkSession, kafka: Kafka) -> None:
    topic, again = kafka.topic(), kafka.topic()
    kafka.send(topic, ["x" * 500])
    rows, target = topic_rows(spark, kafka, topic), to(kafka, topic, again)
    replay(rows, target)
    kafka.delete(again)
    kafka.create(again)
    rows.count()
    replay(rows, target)
    assert values(kafka, again) == ["x" * 500]


def test_a_rate_is_kept(spark: SparkSession, kafka: Kafka) -> None:
    topic, again = kafka.topic(), kafka.new_name("again")
    kafka.send(topic, range(30))
    done = replay(
        topic_rows(spark, kafka, topic), to(kafka, topic, again), settings=Settings(records_per_s=15)
    )
    assert values(kafka, again) == [str(number) for number in range(30)]
    [partition] = done.partitions
    assert partition.transactions == 2


# -- killed
# ---------


class Workers:
    """The Python processes in which tasks of this process's session run."""

    def pids(self) -> list[int]:
        """The workers; the daemon that forks them is left out."""
        return [
            pid
            for pid in _descendants(os.getpid())
            if b"pyspark.daemon" in _command_line(pid) and _command_line(_parent(pid)) == _command_line(pid)
        ]

    def kill(self) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            with suppress(FileNotFoundError):
                yield from _descendants(int(child))


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_killed_tasks_and_brokers_neither_lose_nor_repeat_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each run is killed once it has committed something: its tasks, the broker, both. `local[2]` gives up a
    job with its first failed task, so that every kill of tasks is one of the job.
    """
    rows = spark.range(0, 1_200).selectExpr(
        "CAST(CAST(id AS STRING) AS BINARY) AS key",
        "CAST(CAST(id AS STRING) AS BINARY) AS value",
        "'source' AS topic",
        "CAST(id % 2 AS INT) AS partition",
        "id AS offset",
        "timestamp_millis(id) AS timestamp",
        "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
    )
    settings = Settings(transaction_records=25, records_per_s=150)
    with PykafkaBroker(PROPERTIES, tmp_path) as broker:
        target = Target(broker.address, "again", CREATE)

        def committed() -> int:
            with Client(broker.address) as client:
                group = "replay-to-again"
                return sum(committed_offsets(client, client.coordinator(group), group).values())

        def kill(kind: str, before: int) -> None:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                with suppress(KafkaError, OSError):
                    if committed() > before:
                        break
                time.sleep(0.05)
            if kind != "tasks":
                broker.kill()
            if kind != "broker":
                Workers().kill()
            if kind != "tasks":
                broker.start()

        def run(kind: str) -> None:
            before = committed() if kind != "tasks" else 0
            killer = threading.Thread(target=kill, args=(kind, before))
            killer.start()
            try:
                replay(rows, target, settings=settings)
            except Exception:
                assert kind != "broker"
            finally:
                killer.join()

        for kind in ("tasks", "both", "broker"):
            run(kind)
        replay(rows, target)
        found = read_topic("again", broker.address, isolation_level="read_committed").read_all().to_pylist()
    for partition in range(2):
        values = [row["value"].decode() for row in found if row["partition"] == partition]
        assert values == [str(number) for number in range(partition, 1_200, 2)]
