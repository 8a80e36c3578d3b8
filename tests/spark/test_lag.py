"""What Spark has read, seen by the tools that look at groups."""

from __future__ import annotations

import json
import pickle
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaConsumer

from pykafka_broker.spark import commit_progress
from pykafka_broker.spark.lag import CommitProgress
from tests.cli.conftest import run_command
from tests.metrics.pages import samples_of
from tests.spark.conftest import Broker
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture
def counted(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Callable[[str], StreamingQuery]:
    """Starts a query, named like its topic, that reads it to nowhere."""

    def start(topic: str) -> StreamingQuery:
        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .queryName(topic)
            .option("checkpointLocation", str(tmp_path / topic))
            .start()
        )

    return start


def offsets_of(kafka: Kafka, group: str) -> dict[int, tuple[int, int]]:
    """Partition -> where the group is, and its lag, as a tool shows them."""
    result = run_command("groups", "describe", group, "-b", kafka.bootstrap, "--json")
    if result.status:
        return {}
    [found] = json.loads(result.out)["groups"]
    return {o["partition"]: (o["current_offset"], o["lag"]) for o in found["offsets"]}


def lags_on(page: str, group: str) -> dict[int, float]:
    """Partition -> the lag of a group, as Prometheus reads it."""
    with urllib.request.urlopen(page) as answer:
        samples = samples_of(answer.read().decode())
    lags = {
        (labels["consumergroup"], int(labels["partition"])): lag
        for (name, pairs), lag in samples.items()
        if name == "kafka_consumergroup_lag" and (labels := dict(pairs))
    }
    return {partition: lag for (its_group, partition), lag in lags.items() if its_group == group}


def test_tools_see_how_far_a_query_has_read_and_that_it_is_spark(
    spark: SparkSession, kafka: Kafka, broker: Broker, counted: Callable[[str], StreamingQuery]
) -> None:
    topic, other = kafka.topic(partitions=2), kafka.topic()
    group = kafka.new_name("lag")
    kafka.send(topic, ["a", "b", "c"], partition=0)
    kafka.send(other, ["a"])
    listener = commit_progress(spark, kafka.bootstrap, group, query=topic)
    queries = [counted(topic), counted(other)]
    try:
        for query in queries:
            query.processAllAvailable()
        kafka.eventually(lambda: offsets_of(kafka, group) == {0: (3, 0), 1: (0, 0)})
        kafka.send(topic, ["d"], partition=1)
        queries[0].processAllAvailable()
        kafka.eventually(lambda: offsets_of(kafka, group) == {0: (3, 0), 1: (1, 0)})
    finally:
        for query in queries:
            query.stop()
        spark.streams.removeListener(listener)
    kafka.send(topic, ["e", "f"], partition=0)
    assert offsets_of(kafka, group) == {0: (3, 2), 1: (1, 0)}
    if broker.page is not None:
        assert lags_on(broker.page, group) == {0: 2, 1: 0}
    committed = kafka.admin.list_group_offsets(group)[group]
    assert {place.topic for place in committed} == {topic}
    assert all(one.metadata.startswith(f"Spark query {topic}, batch ") for one in committed.values())
    assert listener.last_error == ""


def test_the_offsets_of_an_idle_query_are_committed_again(
    spark: SparkSession, kafka: Kafka, counted: Callable[[str], StreamingQuery]
) -> None:
    topic, group = kafka.topic(), kafka.new_name("lag")
    kafka.send(topic, ["a"])
    listener = CommitProgress(kafka.bootstrap, group, query=topic, refresh_s=0)
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100ms")
    spark.streams.addListener(listener)
    query = counted(topic)
    try:
        query.processAllAvailable()
        kafka.eventually(lambda: offsets_of(kafka, group) == {0: (1, 0)})
        kafka.admin.delete_groups([group])
        kafka.eventually(lambda: offsets_of(kafka, group) == {0: (1, 0)})
    finally:
        query.stop()
        spark.streams.removeListener(listener)
        spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")


def test_a_group_with_members_is_left_to_them_and_the_query_goes_on(
    spark: SparkSession, kafka: Kafka, counted: Callable[[str], StreamingQuery]
) -> None:
    topic, group = kafka.topic(), kafka.new_name("lag")
    kafka.send(topic, ["a"])
    settings = {"bootstrap_servers": kafka.bootstrap, "group_id": group, "enable_auto_commit": False}
    with KafkaConsumer(topic, auto_offset_reset="earliest", **settings) as member:
        # kafka-python 3.0.12 drops the assignment that arrives when a poll's time is over.
        assert member.poll(timeout_ms=60_000)

        def is_refused() -> bool:
            member.poll(timeout_ms=50)
            kafka.send(topic, ["another batch"])
            return said in listener.last_error

        said = f"Group '{group}' has members, which commit for themselves: take another group"
        listener = commit_progress(spark, kafka.bootstrap, group, query=topic)
        query = counted(topic)
        try:
            kafka.eventually(is_refused)
            assert query.isActive
        finally:
            query.stop()
            spark.streams.removeListener(listener)


def test_a_listener_travels_to_the_server_of_spark_connect() -> None:
    listener = CommitProgress("127.0.0.1:9092", "lag", query="orders")
    there = pickle.loads(pickle.dumps(listener))
    assert (there.bootstrap_servers, there.group, there.query) == ("127.0.0.1:9092", "lag", "orders")


def test_addresses_that_are_none_are_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="'localhost' is not HOST:PORT"):
        commit_progress(spark, "localhost", "g")
