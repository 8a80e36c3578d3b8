"""`spark audit`: whether a topic, an archive of it or its mirror has all records, once, and in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.cells import Cell, Column, Line, Styled, Table
from pykafka_broker.cli.cluster import COMMAND, Cluster, cluster_options, connected
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.session_options import SessionOptions, reader_options, session_options
from pykafka_broker.cli.wording import human_size
from pykafka_broker.spark.archive.settings import TABLE_FORMATS, TableFormat
from pykafka_broker.spark.archive.settings import Table as ArchiveTable
from pykafka_broker.spark.audit.reading import Questions
from pykafka_broker.spark.audit.report import AuditReport, Finding, Level, PartitionCounts
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.jvm_output import kept_output
from pykafka_broker.spark.security import OPEN, properties_in, secured, source_options
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pykafka_broker.spark.audit.topic_log import TopicLog

#: The values of `kafka.isolation.level`.
LEVELS = ("read_uncommitted", "read_committed")
ISOLATION_LEVEL = "kafka.isolation.level"


class Beside(NamedTuple):
    """The archive or mirror that the topic is compared with."""

    archive: str | None
    archive_format: TableFormat
    checkpoint: str | None
    may_lack_partitions: bool
    mirror_of: str | None
    source_topic: str | None
    ignore_timestamps: bool


class Limits(NamedTuple):
    """The limits beyond which something is a finding."""

    no_keys: bool
    unique_keys: bool
    late_s: float | None
    skew_s: float | None
    examples: int

    @property
    def questions(self) -> Questions:
        """The questions as the audit takes them."""
        return Questions(
            keys=not self.no_keys,
            unique_keys=self.unique_keys,
            late_ms=None if self.late_s is None else round(self.late_s * 1000),
            skew_ms=None if self.skew_s is None else round(self.skew_s * 1000),
            examples=self.examples,
        )


@click.command()
@click.argument("topic", shell_complete=topic_names)
@click.option(
    "--archive",
    metavar="TABLE",
    help="Audit this archive of the topic, and compare it with the topic: a path or a name, as of `archive`.",
)
@click.option(
    "--format",
    "archive_format",
    type=click.Choice(TABLE_FORMATS),
    default="delta",
    show_default=True,
    help="The format of the archive.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="The checkpoint of the archive job: all that the job has committed must be in the archive.",
)
@click.option(
    "--may-lack-partitions",
    is_flag=True,
    help="Without --checkpoint: the archive may have no record of a partition yet.",
)
@list_option(
    "--mirror-of",
    metavar="HOST:PORT[,…]",
    help="Compare the topic with the one it mirrors in this cluster.",
)
@click.option("--source-topic", metavar="TOPIC", help="The name of the mirrored topic, if it is another one.")
@click.option("--ignore-timestamps", is_flag=True, help="Mirrored records may have timestamps of their own.")
@gathered(Beside, "beside")
@click.option("--no-keys", is_flag=True, help="Leave out doubled records and the order of keys.")
@click.option("--unique-keys", is_flag=True, help="A repeated key is a finding.")
@click.option(
    "--late",
    "late_s",
    type=Seconds(0),
    metavar="SECONDS",
    help="A record this far behind the newest record before it is late, which is a finding.",
)
@click.option(
    "--skew",
    "skew_s",
    type=Seconds(0),
    metavar="SECONDS",
    help="How much older than another's the newest record of a partition may be.",
)
@click.option(
    "--examples",
    type=click.IntRange(1, 1_000),
    default=5,
    show_default=True,
    help="The number of places of missing offsets to name.",
)
@gathered(Limits, "limits")
@reader_options()
@session_options
@cluster_options
@json_option(AuditReport)
def audit(
    topic: str,
    beside: Beside,
    limits: Limits,
    options: Mapping[str, str],
    session: SessionOptions,
    cluster: Cluster,
    output: Output,
) -> int:
    """Check that a topic has every record, once, and in the order of its keys.

    Counts the records of each partition; explains offsets without a record by the topic's own log (markers
    of transactions, aborted records, compaction); looks for doubled records, for keys whose timestamps go
    backwards, and for late records. With --archive, the same of an archive, record by record beside the
    topic; with --mirror-of, of a mirror.

    Spark does the work: records stay with its executors.

    Exit status 1 if there is a finding; a remark leaves it at 0.
    """
    if beside.archive is not None and beside.mirror_of is not None:
        raise click.UsageError("Give --archive or --mirror-of, not both.")
    if beside.checkpoint is not None and beside.archive is None:
        raise click.UsageError("--checkpoint is that of an archive job: give --archive, too.")
    source = Source(options)
    tables = [] if beside.archive is None or beside.archive_format == "parquet" else [beside.archive_format]
    with (
        source.log(cluster, topic) as log,
        explained(),
        kept_output(),
        session.opened(f"audit of {topic}", tables) as spark,
    ):
        report = audited(spark, source, (cluster, topic, log), beside, limits.questions)
    output.show(report, lines(report), [table(report)])
    return int(report.has_findings)


class Source:
    """How topics are read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """The options of the source; these win over the defaults.

        Raises:
            click.BadParameter: there is no such isolation level.
        """
        self._options = {"includeHeaders": "true", ISOLATION_LEVEL: "read_committed", **options}
        if self._options[ISOLATION_LEVEL] not in LEVELS:
            raise click.BadParameter(f"{ISOLATION_LEVEL} is one of {', '.join(LEVELS)}.")

    def frame(
        self,
        session: SparkSession,
        bootstrap_servers: str,
        topic: str,
        security: Mapping[str, str] = OPEN,
    ) -> DataFrame:
        """All records of a topic at the time of reading."""
        own = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
        options = {**source_options(security), **self._options, **own}
        return session.read.format("kafka").options(**options).load()

    @contextmanager
    def log(self, cluster: Cluster, topic: str) -> Iterator[TopicLog]:
        """The log of the topic.

        Raises:
            KafkaError: there is no such topic.
        """
        from pykafka_broker.cli.suggestions import known_topic
        from pykafka_broker.spark.audit.topic_log import TopicLog

        security = cluster.identity.security or secured(COMMAND, properties_in(self._options)).security
        with connected(cluster.bootstrap_server, cluster.timeout_s, security) as client:
            known_topic(client, topic)
            yield TopicLog(client, topic, LEVELS.index(self._options[ISOLATION_LEVEL]))


@contextmanager
def explained() -> Iterator[None]:
    """Explain errors of Spark.

    Raises:
        SparkError: the code in the session fails.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pykafka_broker.spark.reading import explain

    try:
        yield
    except (PySparkException, Py4JError) as error:
        message, remedy, _ = explain(str(error))
        raise SparkError(f"{message}\n{remedy}") from None


def audited(
    session: SparkSession,
    source: Source,
    asked: tuple[Cluster, str, TopicLog],
    beside: Beside,
    questions: Questions,
) -> AuditReport:
    """The audit that is asked for.

    Raises:
        KafkaError: the log cannot be read.
    """
    from pykafka_broker.spark import audit as audits
    from pykafka_broker.spark.archive.checkpoints import committed_offsets
    from pykafka_broker.spark.archive.tables import table_of

    cluster, topic, log = asked
    frame = source.frame(session, cluster.bootstrap_server, topic, cluster.client_properties())
    if beside.archive is not None:
        archive = ArchiveTable(beside.archive_format, beside.archive)
        committed = None
        if beside.checkpoint is not None:
            topic_id = log.topic_id
            committed = committed_offsets(session, beside.checkpoint, archive, topic, topic_id)
        return audits.audit_archive(
            table_of(session, archive).rows(),
            frame,
            topic,
            log=log,
            questions=questions,
            committed=committed,
            may_lack_partitions=beside.may_lack_partitions,
        )
    if beside.mirror_of is not None:
        source_topic = beside.source_topic or topic
        other = source.frame(session, beside.mirror_of, source_topic)
        return audits.audit_mirror(
            audits.Side(frame, topic),
            audits.Side(other, source_topic),
            log=log,
            questions=questions,
            with_timestamps=not beside.ignore_timestamps,
        )
    return audits.audit(frame, topic, log=log, questions=questions)


# --- in words ---------------------------------------------------------------------------------------


def lines(report: AuditReport) -> Iterator[Line]:
    """A line for each partition and each finding."""
    for counts in report.partitions:
        yield f"{report.topic}-{counts.partition}: {partition_line(counts)}"
    for finding in report.findings:
        yield labelled(finding)
    if not report.has_findings:
        yield "Nothing is wrong."


def labelled(finding: Finding) -> Line:
    """A finding with its level."""
    if finding.level is Level.FINDING:
        return (Styled("FINDING", "bold red"), f" {finding.message}")
    return (Styled("remark ", "yellow"), f" {finding.message}")


def partition_line(counts: PartitionCounts) -> str:
    """The counts of a partition, as a line."""
    parts = [counted(counts.records, "record")]
    if counts.first_offset is not None:
        parts.append(f"offsets {counts.first_offset} to {counts.last_offset}")
    if counts.missing:
        said = instead(counts)
        parts.append(f"{counted(counts.missing, 'offset')} without one{f' ({said})' if said else ''}")
    if counts.keys:
        parts.append(counted(counts.keys, "key"))
    return f"{', '.join(parts)}."


def instead(counts: PartitionCounts) -> str:
    """What is at offsets without a record."""
    kinds = ((counts.markers, "marker"), (counts.aborted, "aborted"), (counts.compacted, "compacted"))
    found = [(number, noun) for number, noun in kinds if number]
    return ", ".join(
        counted(number, noun) if noun == "marker" else f"{number:,} {noun}" for number, noun in found
    )


def table(report: AuditReport) -> Table:
    """All partitions, for a terminal, with the findings below."""
    columns = (
        Column("PARTITION", is_number=True),
        Column("RECORDS", is_number=True),
        Column("SIZE", is_number=True, drop=2),
        Column("FIRST", is_number=True),
        Column("LAST", is_number=True),
        Column("NO RECORD", is_number=True),
        Column("OF THESE", drop=1),
        Column("KEYS", is_number=True, drop=3),
    )
    said = "\n".join(
        f"{'FINDING' if finding.level is Level.FINDING else 'remark'}  {finding.message}"
        for finding in report.findings
    )
    return Table(
        columns,
        [_row(counts) for counts in report.partitions],
        heading=report.topic,
        details=[("records", report.records), ("findings", str(_number_of_findings(report)))],
        footer=said or "Nothing is wrong.",
    )


def _number_of_findings(report: AuditReport) -> int:
    return sum(finding.level is Level.FINDING for finding in report.findings)


def _row(counts: PartitionCounts) -> Sequence[Cell]:
    return [
        counts.partition,
        counts.records,
        human_size(counts.size_bytes),
        counts.first_offset,
        counts.last_offset,
        counts.missing,
        instead(counts) or None,
        counts.keys,
    ]
