"""Spark and the project's jobs on a cluster with TLS, users and ACLs, by SCRAM.

`interop.spark` has each release of Spark log in, by SCRAM and with a delegation token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from pykafka_broker import Broker, Security, load_config
from pykafka_broker.arrow import read_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import CLIENT
from pykafka_broker.client.offsets import committed_offsets
from pykafka_broker.spark import commit_progress
from pykafka_broker.spark.archive import Table, Topics, archive_topics
from pykafka_broker.spark.replay import Target, replay
from pykafka_broker.spark.security import secured as secured_identity
from pykafka_broker.spark.security import source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What Spark's source and sink need, and nothing else; the project's jobs keep their progress in groups.
ACLS = {
    "spark": ["read topic orders", "write topic copies*", "create topic copies*"],
    "jobs": ["all topic *", "all group *", "all transactional-id *"],
    "stranger": ["describe topic orders"],
}
USERS = {name: f"{name}-secret" for name in ("spark", "jobs", "stranger", "boss")}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """With the topic `orders`, which has a hundred records."""
    config = load_config(
        data_dir=tmp_path_factory.mktemp("secured"),
        listen="127.0.0.1:0",
        overrides={"delegation.token.secret.key": "of tests", "num.partitions": 2},
    )
    security = Security(USERS, acls=ACLS, super_users=["boss"], tls=True)
    with Broker(config, security=security) as broker:
        with KafkaProducer(**broker.client_settings("boss").python) as producer:
            for number in range(100):
                producer.send("orders", str(number).encode())
        yield broker


def properties_of(broker: Broker, user: str) -> dict[str, str]:
    """Those of Kafka's clients about security."""
    settings = broker.client_settings(user).java
    del settings["bootstrap.servers"]
    return settings


def read(spark: SparkSession, broker: Broker, user: str, topic: str = "orders") -> DataFrame:
    return (
        spark.read.format("kafka")
        .options(**source_options(properties_of(broker, user)))
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic)
        .load()
    )


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.selectExpr("CAST(value AS STRING) AS value").collect())


def test_a_table_and_a_stream_are_read_and_written_by_a_user_with_just_these_acls(
    spark: SparkSession, secured: Broker, tmp_path: Path
) -> None:
    options = source_options(properties_of(secured, "spark"))
    address = {"kafka.bootstrap.servers": secured.bootstrap_servers}
    assert numbers(read(spark, secured, "spark")) == list(range(100))
    stream = (
        spark.readStream.format("kafka")
        .options(**options, **address, subscribe="orders", startingOffsets="earliest")
        .load()
        .select("value")
    )
    query = (
        stream.writeStream.format("kafka")
        .options(**options, **address, topic="copies", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert numbers(read(spark, secured, "boss", "copies")) == list(range(100))


@pytest.mark.parametrize(
    ("user", "told"),
    [("stranger", "Not authorized to access topics: [orders]"), ("spark", "Authentication failed")],
    ids=["without an ACL", "with a wrong password"],
)
def test_spark_is_told_why_it_may_not(spark: SparkSession, secured: Broker, user: str, told: str) -> None:
    options = source_options(properties_of(secured, user))
    if user == "spark":
        options = {key: value.replace("spark-secret", "guessed") for key, value in options.items()}
    frame = (
        spark.read.format("kafka")
        .options(**options, subscribe="orders")
        .option("kafka.bootstrap.servers", secured.bootstrap_servers)
        .option("fetchOffset.numRetries", "0")
    )
    with pytest.raises(Exception, match=re.escape(told)) as refused:
        frame.load().collect()
    assert "stranger-secret" not in str(refused.value)
    assert "guessed" not in str(refused.value)


def test_jobs_of_this_package_log_in_too(spark: SparkSession, secured: Broker, tmp_path: Path) -> None:
    """An archive, its replay, and the progress of a query in a group."""
    properties = properties_of(secured, "jobs")
    address = secured.bootstrap_servers
    table = Table("delta", str(tmp_path / "raw"))
    topics = Topics(address, ("orders",), source_options(properties))
    listener = commit_progress(spark, address, "archived", security=properties)
    try:
        assert archive_topics(spark, topics, table, str(tmp_path / "checkpoint")).records == 100
        # Listeners are told in a thread of their own.
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    assert listener.last_error == ""
    with Client(address, identity=secured_identity(CLIENT, properties)) as client:
        committed = committed_offsets(client, client.coordinator("archived"), "archived")
    assert sum(committed.values()) == 100

    rows = spark.read.format("delta").load(str(tmp_path / "raw"))
    with KafkaProducer(**secured.client_settings("boss").python) as producer:
        producer.partitions_for("again")
    done = replay(rows, Target(address, "again", security=properties))
    assert done.records == 100
    assert numbers(read(spark, secured, "jobs", "again")) == list(range(100))


def test_without_spark_a_topic_is_read_with_the_same_properties(secured: Broker) -> None:
    found = read_topic("orders", secured.client_settings("spark").java, columns=["value"]).read_all()
    assert sorted(int(value.as_py()) for value in found["value"]) == list(range(100))
