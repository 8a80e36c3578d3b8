"""Checkpoints that real queries leave, and topics that change behind their backs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.cli.conftest import Result, run_command
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Copy:
    """A query that appends the values of a topic to a table of files, and ends when it has all."""

    def __init__(self, spark: SparkSession, kafka: Kafka, topic: str, folder: Path) -> None:
        self.spark, self.kafka, self.topic = spark, kafka, topic
        self.target, self.checkpoint = str(folder / "table"), folder / "checkpoint"

    def run(self) -> list[str]:
        """Run to the end of the topic; all values that have come so far, in order."""
        query = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.kafka.bootstrap)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("fetchOffset.retryIntervalMs", "10")
            .load()
            .selectExpr("CAST(value AS STRING) AS value", "offset")
            .writeStream.format("parquet")
            .option("path", self.target)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(row.value for row in self.spark.read.parquet(self.target).collect())

    def command(self, *words: str) -> Result:
        verb, *options = words
        where = ("-b", self.kafka.bootstrap)
        return run_command("spark", "checkpoint", verb, str(self.checkpoint), *options, *where)


@pytest.fixture
def copy(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Copy:
    topic = kafka.topic()
    kafka.send(topic, ["a0", "a1", "a2"])
    copy = Copy(spark, kafka, topic, tmp_path)
    assert copy.run() == ["a0", "a1", "a2"]
    return copy


def test_a_query_that_retention_has_overtaken_goes_on_behind_the_gap(copy: Copy) -> None:
    place = f"{copy.topic}-0"
    assert copy.command("inspect", "--remember") == Result(
        0, f"{place}: reads on at offset 3, 0 offsets before the end.\n", ""
    )
    copy.kafka.send(copy.topic, ["a3", "a4", "a5"])
    copy.kafka.delete_records(copy.topic, before=5)
    gone = (
        f"{place}: offsets 3 to 4 are gone and were not read: retention or DeleteRecords removed them (the "
        "topic holds 5 to 6)."
    )
    assert copy.command("inspect") == Result(1, f"{gone}\n", "")
    # What Spark has planned by then is run again, and fails each time.
    with pytest.raises(StreamingQueryException, match="Some data may have been lost"):
        copy.run()

    way_on = f"{gone} The query goes on at offset 5 and skips 2 offsets.\n"
    assert copy.command("repair") == Result(
        1, f"{way_on}Nothing is changed yet: stop the query, and repeat with --yes.\n", ""
    )
    done = copy.command("repair", "--yes")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{way_on}The old offsets are in {copy.checkpoint}/offsets/")
    assert copy.command("repair").out == "Nothing is to be repaired.\n"
    assert copy.run() == ["a0", "a1", "a2", "a5"]


def test_a_query_whose_topic_was_created_anew_reads_it_from_its_beginning(copy: Copy) -> None:
    place = f"{copy.topic}-0"
    copy.command("inspect", "--remember")
    copy.kafka.delete(copy.topic)
    assert (
        copy.command("inspect").out == f"{place}: does not exist any more; the checkpoint is at offset 3.\n"
    )
    copy.kafka.create(copy.topic)
    copy.kafka.send(copy.topic, ["b0", "b1", "b2", "b3"])
    # The offsets fit: Spark would read b3 alone, and not say a word.
    anew = f"{place}: the topic was created anew since (the topic holds 0 to 4), so offset 3 means nothing."
    assert copy.command("inspect") == Result(1, f"{anew}\n", "")
    assert copy.command("repair", "--yes").out.startswith(
        f"{anew} The query goes on at offset 0 and reads 4 offsets that may be new or known to it.\n"
    )
    assert copy.run() == ["a0", "a1", "a2", "b0", "b1", "b2", "b3"]
    assert copy.command("inspect").status == 0


def test_a_topic_that_is_shorter_than_the_checkpoint_is_told_without_an_id(copy: Copy) -> None:
    copy.kafka.delete(copy.topic)
    copy.kafka.create(copy.topic)
    copy.kafka.send(copy.topic, ["b0"])
    found = copy.command("inspect")
    assert (found.status, found.out) == (
        1,
        f"{copy.topic}-0: the checkpoint is at offset 3, and the topic holds 0 to 1: the topic was deleted "
        "and created anew, or lost its end.\n",
    )
    assert copy.command("repair", "--yes", "--to", "latest").status == 0
    copy.kafka.send(copy.topic, ["b1"])
    assert copy.run() == ["a0", "a1", "a2", "b1"]
