"""`spark replay`: a table, a log folder or a topic to a topic."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pykafka_broker.cli.cluster import COMMAND, Cluster, cluster_options, connected
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.options import gathered, pairs
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.session_options import SessionOptions, reader_options, session_options
from pykafka_broker.cli.wording import human_size
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import KAFKA_COLUMNS, TOPIC_ID
from pykafka_broker.spark.replay.isolation import COMMITTED, KAFKA, KAFKA_LOG, LEVEL
from pykafka_broker.spark.security import properties_in, secured, source_options
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pykafka_broker.spark.replay import Replayed, Settings, Target, Window

#: Spark's names of what it reads.
FORMATS = ("delta", "iceberg", "parquet", "kafka_log", "kafka")
TABLES = ("delta", "iceberg")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class ReplayedPartition(NamedTuple):
    """A partition that was written, and the offset in the source at which a next run goes on."""

    topic: str
    partition: int
    records: int
    bytes: int
    duplicates: int
    skipped: int
    transactions: int
    position: int


class Source(NamedTuple):
    """The source of a replay."""

    source: str
    format: str
    options: Mapping[str, str]
    without_headers: bool


#: The default options of a reader. Aborted records would be written as committed ones, and without its id a
#: topic that was recreated would be taken for the old one.
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    KAFKA: {"includeHeaders": "true", LEVEL: COMMITTED},
    KAFKA_LOG: {"columns": ",".join((*KAFKA_COLUMNS, TOPIC_ID)), LEVEL: COMMITTED},
}
BOOTSTRAP, TOPICS = "kafka.bootstrap.servers", "subscribe"


class _Chosen(NamedTuple):
    """The choice of its records."""

    topics: tuple[str, ...]
    topic_ids: tuple[str, ...]
    partitions: tuple[int, ...]
    offsets: tuple[str, ...]
    since: dt.datetime | None
    until: dt.datetime | None
    first_day: dt.datetime | None
    last_day: dt.datetime | None


class _Destination(NamedTuple):
    """The target topics, and what to do about those that do not fit."""

    to: tuple[str, ...]
    create: bool
    change: bool
    accepted: tuple[str, ...]
    partition_count: int | None


class _Manner(NamedTuple):
    """The settings of writing."""

    name: str | None
    starts_over: bool
    records_per_s: float | None
    bytes_per_s: float | None
    codec: str


class _Moment(click.ParamType[dt.datetime]):
    """A time in ISO 8601; without an offset it is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.datetime:
        try:
            moment = dt.datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time, such as 2026-11-22T18:00:00+01:00", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


DAY = click.DateTime(["%Y-%m-%d"])
RATE = click.FloatRange(min=0.0, min_open=True)


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="delta",
    show_default=True,
    help="What SOURCE is: the path or name of a table, a folder of Parquet or of logs, or a topic.",
)
@reader_options("An option of Spark's reader.")
@click.option("--without-headers", is_flag=True, help="Also take a SOURCE without a column of headers.")
@click.option(
    "--to",
    multiple=True,
    required=True,
    metavar="[TOPIC=]TOPIC",
    help="Where records go, for each topic of SOURCE if it has several; repeatable.",
)
@click.option("--create", is_flag=True, help="Create topics that are missing, so that they fit.")
@click.option("--change", is_flag=True, help="Also change existing topics, so that they fit.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="KEY",
    help="Leave this as it is, such as retention.ms; records: a topic may have some already. Repeatable.",
)
@click.option(
    "--partitions", "partition_count", type=click.IntRange(min=1), help="The partitions of a created topic."
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=topic_names,
    help="Only this one; repeatable.",
)
@click.option("--topic-id", "topic_ids", multiple=True, metavar="ID", help="Only of this topic; repeatable.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Only this one; repeatable.",
)
@click.option(
    "--offsets",
    multiple=True,
    metavar="TOPIC:PARTITION:[FIRST]:[END]",
    help="Only these partitions, from FIRST to before END; repeatable.",
)
@click.option("--since", type=_Moment(), metavar="TIME", help="Only records with this timestamp or later.")
@click.option("--until", type=_Moment(), metavar="TIME", help="Only records with an earlier timestamp.")
@click.option("--first-day", type=DAY, metavar="DAY", help="Only from this day of the archive on.")
@click.option("--last-day", type=DAY, metavar="DAY", help="Only up to this day, which is included.")
@click.option("--name", help="The group under which the progress is kept [default: replay-to-TOPIC].")
@click.option("--start-over", "starts_over", is_flag=True, help="Forget the progress: write all again.")
@click.option(
    "--records-per-second", "records_per_s", type=RATE, metavar="NUMBER", help="Not faster than this."
)
@click.option("--bytes-per-second", "bytes_per_s", type=RATE, metavar="NUMBER", help="Not faster than this.")
@click.option(
    "--compression",
    "codec",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="How batches are compressed.",
)
@session_options
@cluster_options
@json_option(ReplayedPartition, key="partitions")
@gathered(Source, "source")
@gathered(_Chosen, "chosen")
@gathered(_Destination, "destination")
@gathered(_Manner, "manner")
def replay(
    source: Source,
    chosen: _Chosen,
    destination: _Destination,
    manner: _Manner,
    session: SessionOptions,
    cluster: Cluster,
    output: Output,
) -> None:
    """Write the records of a table, a log folder or a topic to a topic again, each once.

    Key, value, headers, timestamp, partition and the order in each partition stay as they are. The progress
    is committed with the records: run again, also after it was killed, a replay goes on where it was. A topic
    that would delete, change or refuse records is refused, with the setting that would fit; --create and
    --change set it.
    """
    from pykafka_broker.spark.replay import replay as run

    window = _window(chosen)
    target = _target(cluster, destination)
    settings = _settings(manner)
    tables = [source.format] if source.format in TABLES else []
    ask_first(source, cluster)
    with session.opened(f"replay of {source.source}", tables) as spark:
        done = run(
            _rows(spark, source, cluster),
            target,
            name=manner.name,
            window=window,
            settings=settings,
            starts_over=manner.starts_over,
            without_headers=source.without_headers,
        )
    total = total_of(done, source.source)
    for topic, key, value in done.changes:
        output.note(f"Topic '{topic}' has {key}={value} now.")
    partitions = [ReplayedPartition(*partition) for partition in done.partitions]
    output.show_all(partitions, map(sentence, partitions))
    output.remark(total)


def total_of(done: Replayed, source: str) -> str:
    """A run as a line.

    Raises:
        SparkError: there was nothing to replay, perhaps because a name is mistyped.
    """
    if not done.found:
        raise SparkError(
            f"No record of {source} is chosen, so nothing was replayed: look at --topic, --topic-id, "
            "--partition, --offsets, --since, --until, --first-day and --last-day."
        )
    if not done.records:
        return f"{counted(done.found, 'record')} of the source in the window, all there already."
    rate = done.records / done.seconds
    return f"{counted(done.records, 'record')} replayed in {done.seconds:.1f} s, {rate:,.0f} records/s."


def sentence(partition: ReplayedPartition) -> str:
    """A partition as a line."""
    parts = [
        f"{partition.topic}-{partition.partition}: {counted(partition.records, 'record')}, "
        f"{human_size(partition.bytes)} in {counted(partition.transactions, 'transaction')}, up to offset "
        f"{partition.position - 1} of the source"
    ]
    if partition.duplicates:
        parts.append(f"{counted(partition.duplicates, 'row')} that came twice left out")
    return ", ".join(parts)


# -- what the options mean
# ------------------------


def _window(chosen: _Chosen) -> Window:
    from pykafka_broker.spark.replay import OffsetRange, Window

    ranges = []
    for entry in chosen.offsets:
        topic, *numbers = entry.rsplit(":", 3)
        if len(numbers) != 3 or not all(number.isdecimal() or not number for number in numbers):
            raise click.BadParameter(
                f"{entry!r} is not TOPIC:PARTITION:[FIRST]:[END]", param_hint="--offsets"
            )
        partition, first, end = (int(number) if number else None for number in numbers)
        if partition is None:
            raise click.BadParameter(f"{entry!r} names no partition", param_hint="--offsets")
        ranges.append(OffsetRange(topic, partition, first, end))
    return Window(
        chosen.topics,
        chosen.partitions,
        chosen.topic_ids,
        ranges,
        chosen.since,
        chosen.until,
        chosen.first_day and chosen.first_day.date(),
        chosen.last_day and chosen.last_day.date(),
    )


def _target(cluster: Cluster, destination: _Destination) -> Target:
    from pykafka_broker.spark.replay import Preparation, Target

    named = [entry for entry in destination.to if "=" in entry]
    alone = [entry for entry in destination.to if "=" not in entry]
    if len(alone) > 1 or (alone and named):
        raise click.BadParameter("several need TOPIC=TOPIC each", param_hint="--to")
    preparation = Preparation.REFUSE
    if destination.change:
        preparation = Preparation.CHANGE
    elif destination.create:
        preparation = Preparation.CREATE
    topics = alone[0] if alone else dict(pairs(tuple(named), "--to"))
    return Target(
        cluster.bootstrap_server,
        topics,
        preparation,
        destination.accepted,
        destination.partition_count,
        cluster.client_properties(),
    )


def _settings(manner: _Manner) -> Settings:
    from pykafka_broker.protocol.records.compression import Codec
    from pykafka_broker.spark.replay import Settings

    return Settings(
        codec=Codec[manner.codec.upper()],
        records_per_s=manner.records_per_s,
        bytes_per_s=manner.bytes_per_s,
    )


# -- the source
# -------------


def options_of(source: Source, cluster: Cluster) -> dict[str, str]:
    """The options of the reader: those given, and the defaults of its format. The cluster's security is not
    given to another cluster.
    """
    defaults = dict(DEFAULTS.get(source.format, {}))
    given = {key.lower() for key in source.options}
    if source.format == KAFKA:
        defaults |= {BOOTSTRAP: cluster.bootstrap_server, TOPICS: source.source}
        if BOOTSTRAP not in given:
            defaults |= source_options(cluster.client_properties())
    return {**{key: value for key, value in defaults.items() if key.lower() not in given}, **source.options}


def ask_first(source: Source, cluster: Cluster) -> None:
    """Check that the brokers answer, and that the topics to read exist, before a session is started.

    Raises:
        KafkaError, OSError: they do not, or a topic is not there.
    """
    from pykafka_broker.cli.suggestions import known_topic

    with cluster.connect() as client:
        client.metadata([])
    if source.format != KAFKA:
        return
    options = options_of(source, cluster)
    security = secured(COMMAND, properties_in(options)).security
    options = {key.lower(): value for key, value in options.items()}
    with connected(options[BOOTSTRAP], cluster.timeout_s, security) as client:
        for topic in options[TOPICS].split(","):
            known_topic(client, topic.strip())


def _rows(spark: SparkSession, source: Source, cluster: Cluster) -> DataFrame:
    if source.format == KAFKA_LOG:
        from pykafka_broker.spark import register_kafka_log

        register_kafka_log(spark)
    reader = spark.read.format(source.format).options(**options_of(source, cluster))
    if source.format == KAFKA:
        return reader.load()
    if source.format == "iceberg" or (source.format == "delta" and "/" not in source.source):
        return reader.table(source.source)
    return reader.load(source.source)
