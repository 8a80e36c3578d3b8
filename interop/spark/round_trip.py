"""Run in a process of its own by `interop.spark`:

    round_trip.py BOOTSTRAP DATA_DIR SECURED VERSION PYSPARK_FOLDER JAR...

SECURED is a JSON object about a secured node: its "address", the "properties" of Kafka's clients by which a
user logs in there, and the "prefix" of the topics that he may use and that are there.
Prints one JSON object: by scenario "pass", "lacks: what" or "fails: why".
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

BOOTSTRAP, DATA_DIR, _SECURED, VERSION, FOLDER, *JARS = sys.argv[1:]
SECURED = json.loads(_SECURED)
sys.path.insert(0, FOLDER)
os.environ["PYTHONPATH"] = FOLDER
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ.pop("SPARK_HOME", None)

import pyspark  # noqa: E402 - the release that was asked for
from pyspark.sql import SparkSession  # noqa: E402

ROWS = 5000


def topic(name: str) -> str:
    return f"spark-{VERSION}-{name}-{int(time.time())}"


def rows(spark: SparkSession, first: int, count: int = ROWS) -> Any:
    """Keys, values, headers and a partition for each row."""
    return spark.range(first, first + count).selectExpr(
        "CAST(CAST(id % 7 AS STRING) AS BINARY) AS key",
        "CAST(concat('value ', id) AS BINARY) AS value",
        "array(struct('n' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value)) AS headers",
        "CAST(id % 3 AS INT) AS partition",
    )


def found(spark: SparkSession, name: str, **options: str) -> list[tuple[Any, ...]]:
    frame = kafka(spark.read, subscribe=name, includeHeaders="true", **options).load()
    listed = frame.select("key", "value", "headers", "partition", "offset").collect()
    return sorted(
        (bytes(row.value), bytes(row.key), bytes(row.headers[0].value), row.partition) for row in listed
    )


def wanted(spark: SparkSession, count: int) -> list[tuple[Any, ...]]:
    listed = rows(spark, 0, count).collect()
    return sorted(
        (bytes(row.value), bytes(row.key), bytes(row.headers[0].value), row.partition) for row in listed
    )


def kafka(builder: Any, **options: str) -> Any:
    builder = builder.format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP)
    return builder.options(**options)


def a_batch_is_written_and_read(spark: SparkSession) -> None:
    name = topic("batch")
    kafka(rows(spark, 0).write, topic=name).save()
    assert found(spark, name) == wanted(spark, ROWS), "what is read is not what was written"
    half = json.dumps({name: {"0": 100, "1": 200, "2": 300}})
    some = found(spark, name, startingOffsets=half)
    assert len(some) == ROWS - 600, f"{len(some)} rows from given offsets"


def a_stream_is_copied_and_resumed(spark: SparkSession) -> None:
    source, target = topic("source"), topic("target")
    with tempfile.TemporaryDirectory() as checkpoint:
        for round_number in range(2):
            kafka(rows(spark, round_number * ROWS).write, topic=source).save()
            stream = kafka(
                spark.readStream,
                subscribe=source,
                startingOffsets="earliest",
                includeHeaders="true",
                maxOffsetsPerTrigger="2000",
            ).load()
            writer = stream.select("key", "value", "headers", "partition").writeStream
            query = (
                kafka(writer, topic=target, checkpointLocation=checkpoint).trigger(availableNow=True).start()
            )
            assert query.awaitTermination(120), "the copy did not end"
            copied = found(spark, target)
            assert copied == wanted(spark, (round_number + 1) * ROWS), f"{len(copied)} rows were copied"


def an_archive_gives_the_topic_again(spark: SparkSession) -> None:
    from pykafka_broker.client.blocking import Client
    from pykafka_broker.spark.archive import Table, Topics, archive_topics
    from pykafka_broker.spark.audit import Level, TopicLog, audit_archive
    from pykafka_broker.spark.replay import Preparation, Target, replay

    source, target = topic("archived"), topic("replayed")
    # By one task: two would write records of a key out of order, which the audit finds.
    kafka(rows(spark, 0).coalesce(1).write, topic=source).save()
    with tempfile.TemporaryDirectory() as folder:
        table = Table("parquet", f"{folder}/table")
        archived = archive_topics(spark, Topics(BOOTSTRAP, (source,)), table, f"{folder}/checkpoint")
        assert archived.records == ROWS, f"{archived.records} records were archived"
        archive = spark.read.parquet(table.name)
        written = replay(archive, Target(BOOTSTRAP, {source: target}, Preparation.CREATE))
        assert written.records == ROWS, f"{written.records} records were replayed"
        with Client(BOOTSTRAP) as client:
            records = kafka(spark.read, subscribe=source, includeHeaders="true").load()
            report = audit_archive(archive, records, source, log=TopicLog(client, source))
            wrong = [finding.message for finding in report.findings if finding.level is Level.FINDING]
            assert not wrong, wrong
    assert found(spark, target) == wanted(spark, ROWS), "the topic is not what it was"


def log_folders_are_read_as_batch_and_stream(spark: SparkSession) -> None:
    from pykafka_broker.spark import SparkError, register_kafka_log

    try:
        register_kafka_log(spark)
    except SparkError as error:
        raise LacksError(str(error)) from None
    name = topic("folders")
    kafka(rows(spark, 0).write, topic=name).save()
    found = spark.read.format("kafka_log").option("subscribe", name).load(DATA_DIR)
    assert found.count() == ROWS, f"{found.count()} rows in a batch"
    stream = (
        spark.readStream.format("kafka_log")
        .options(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger="2000")
        .load(DATA_DIR)
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        read: list[tuple[int, int]] = []

        def later(batch: Any, number: int) -> None:
            read.append((number, batch.count()))
            # Not read: the stream ends where the topic ended when it began.
            kafka(rows(spark, ROWS, 10).write, topic=name).save()

        query = stream.writeStream.foreachBatch(later).option("checkpointLocation", checkpoint)
        assert query.trigger(availableNow=True).start().awaitTermination(120), "the stream did not end"
    sizes = [size for _, size in read]
    assert max(sizes) <= 2000, f"batches of {sizes} rows"
    # Spark 4.0 and 4.1 run a single batch of a source in Python.
    assert sum(sizes) == ROWS or (len(sizes) == 1 and not says_how_much()), f"batches of {sizes} rows"


def secured_options(about: str = "") -> dict[str, str]:
    """Options for the secured node, with the properties whose keys begin so."""
    properties = {f"kafka.{key}": value for key, value in SECURED["properties"].items()}
    chosen = {key: value for key, value in properties.items() if key.startswith(f"kafka.{about}")}
    return {"kafka.bootstrap.servers": SECURED["address"], **chosen}


def a_user_writes_copies_and_reads_over_tls(spark: SparkSession) -> None:
    options, written, copied = secured_options(), SECURED["prefix"] + "written", SECURED["prefix"] + "copied"
    kafka(rows(spark, 0).write, topic=written, **options).save()
    stream = kafka(
        spark.readStream, subscribe=written, startingOffsets="earliest", includeHeaders="true", **options
    ).load()
    writer = stream.select("key", "value", "headers", "partition").writeStream
    with tempfile.TemporaryDirectory() as checkpoint:
        query = kafka(writer, topic=copied, checkpointLocation=checkpoint, **options)
        assert query.trigger(availableNow=True).start().awaitTermination(120), "the copy did not end"
    assert found(spark, copied, **options) == wanted(spark, ROWS), "what is read is not what was written"


def a_delegation_token_of_the_user_writes_and_reads(spark: SparkSession) -> None:
    """Spark's own provider asks the broker for the token, with the login of the user. Spark calls it at the
    start where Hadoop is secured by Kerberos; here the program does. From then on sources and sinks that name
    no login use the token.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    properties, cluster = SECURED["properties"], "spark.kafka.clusters.secured"
    conf = jvm.org.apache.spark.SparkEnv.get().conf()
    for key, value in {
        "auth.bootstrap.servers": SECURED["address"],
        "target.bootstrap.servers.regex": SECURED["address"].replace(".", r"\."),
        "sasl.token.mechanism": properties["sasl.mechanism"],
        "ssl.truststore.type": properties["ssl.truststore.type"],
        "ssl.truststore.location": properties["ssl.truststore.location"],
        "kafka.sasl.mechanism": properties["sasl.mechanism"],
        "kafka.sasl.jaas.config": properties["sasl.jaas.config"],
    }.items():
        conf.set(f"{cluster}.{key}", value)
    credentials = jvm.org.apache.hadoop.security.Credentials()
    provider = jvm.org.apache.spark.kafka010.KafkaDelegationTokenProvider()
    provider.obtainDelegationTokens(jvm.org.apache.hadoop.conf.Configuration(), conf, credentials)
    assert credentials.numberOfTokens() == 1, "the broker gave no token"
    jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)

    options, name = secured_options("ssl."), SECURED["prefix"] + "by-token"
    assert not any("sasl" in key for key in options), "it names a login"
    kafka(rows(spark, 0).write, topic=name, **options).save()
    assert found(spark, name, **options) == wanted(spark, ROWS), "what is read is not what was written"


def says_how_much() -> bool:
    """Whether this Spark asks a stream in Python from where it reads and how much, as 4.2 does."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


class LacksError(Exception):
    """This release of Spark cannot do it, and why."""


def outcome(scenario: Callable[[SparkSession], None], spark: SparkSession) -> str:
    try:
        scenario(spark)
    except LacksError as error:
        return f"lacks: {error}"
    except Exception as error:
        first, *more = str(error).splitlines()
        causes = [line for line in more if "Caused by" in line or "Exception:" in line]
        return f"fails: {'; '.join([first, *causes])}"
    return "pass"


def main() -> None:
    assert pyspark.__version__ == VERSION, pyspark.__version__
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(JARS))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    scenarios = (
        a_batch_is_written_and_read,
        a_stream_is_copied_and_resumed,
        an_archive_gives_the_topic_again,
        log_folders_are_read_as_batch_and_stream,
        a_user_writes_copies_and_reads_over_tls,
        a_delegation_token_of_the_user_writes_and_reads,
    )
    cells = {f"spark.{scenario.__name__}": outcome(scenario, spark) for scenario in scenarios}
    spark.stop()
    print(json.dumps(cells), flush=True)


if __name__ == "__main__":
    main()
