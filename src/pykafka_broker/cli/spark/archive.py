"""`spark archive`: topics to a lake table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.options import Seconds, gathered
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.session_options import (
    SessionOptions,
    format_option,
    reader_options,
    session_options,
)
from pykafka_broker.cli.wording import human_size
from pykafka_broker.spark.archive.settings import Start, TableFormat
from pykafka_broker.spark.security import source_options
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pykafka_broker.spark.archive.progress import Batch


class ArchivedBatch(NamedTuple):
    """A batch that is in the table."""

    batch: int
    records: int
    bytes: int
    seconds: float
    lag: int | None


class _Target(NamedTuple):
    """The table, and the checkpoint of the job that fills it."""

    table: str
    table_format: TableFormat
    checkpoint: str
    start: str
    decode: tuple[str, ...]


class _Pace(NamedTuple):
    """The options for the library's `Pace`."""

    follow: bool
    every_s: float
    batch_records: int | None


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, shell_complete=topic_names)
@click.option(
    "--to",
    "table",
    required=True,
    metavar="TABLE",
    help="A path (Delta, Parquet), or a name in a catalog (Delta, Iceberg); made if it does not exist.",
)
@format_option
@click.option("--checkpoint", required=True, metavar="DIR", help="The folder with the job's progress.")
@click.option(
    "--start",
    type=click.Choice([start.value for start in Start]),
    default=Start.EARLIEST.value,
    show_default=True,
    help="Where a job with a new checkpoint begins.",
)
@click.option(
    "--decode",
    multiple=True,
    metavar="COLUMN=KIND:SCHEMA",
    help="Decode key or value into columns: value=json:FILE, value=avro:FILE or value=registry:URL.",
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C or SIGTERM.")
@click.option(
    "--every",
    "every_s",
    type=Seconds(0.0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: how often a batch begins.",
)
@click.option(
    "--batch-records",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="The most records of a batch.",
)
@reader_options()
@session_options
@cluster_options
@json_option(ArchivedBatch, streams=True)
@gathered(_Target, "target")
@gathered(_Pace, "pace")
def archive(
    topics: tuple[str, ...],
    options: Mapping[str, str],
    target: _Target,
    pace: _Pace,
    session: SessionOptions,
    cluster: Cluster,
    output: Output,
) -> int:
    """Append the records of topics to a table of Delta or Iceberg, or to a folder of Parquet files.

    Exactly once, also when it is killed and started again with the same checkpoint. Ends when the table has
    all records that were there at its start; with --follow it goes on. Ctrl-C and SIGTERM end it after the
    batch that it is writing. A job that would lose or repeat records does not start, and says why.
    """
    from pykafka_broker.spark.archive import Pace, Table, Topics, archive_topics
    from pykafka_broker.spark.archive.formats import parse_format

    security = source_options(cluster.client_properties())
    source = Topics(cluster.bootstrap_server, topics, {**security, **options}).checked()
    table = Table(target.table_format, target.table).checked()
    decode = dict(map(parse_format, target.decode))
    if decode:
        from pykafka_broker.spark.archive.decoding import Decoder

        # The job does this again; here it fails before the slow start of a session.
        Decoder.of(decode, topics)

    def report(batch: Batch) -> None:
        output.show(ArchivedBatch(*batch), [sentence(batch)])

    interrupts = Interrupts()
    # Entered after the session, which installs its own handler for Ctrl-C.
    with session.opened(f"archive to {table.name}", table.jars) as spark, interrupts:
        archived = archive_topics(
            spark,
            source,
            table,
            target.checkpoint,
            start=Start(target.start),
            pace=Pace(pace.follow, pace.every_s, pace.batch_records, lambda: bool(interrupts.number)),
            decode=decode,
            report=report,
        )
    output.remark(
        f"{counted(archived.records, 'record')} ({human_size(archived.bytes)}) in "
        f"{counted(archived.batches, 'batch', 'batches')} archived to {table.name}."
    )
    return interrupts.exit_status


def sentence(batch: Batch) -> str:
    """A batch as a line."""
    lag = "" if batch.lag is None else f", {counted(batch.lag, 'offset')} behind"
    return (
        f"Batch {batch.number}: {counted(batch.records, 'record')}, {human_size(batch.bytes)} in "
        f"{batch.seconds:.1f} s, {batch.records_per_s:,.0f} records/s, {human_size(batch.bytes_per_s)}/s{lag}"
    )
