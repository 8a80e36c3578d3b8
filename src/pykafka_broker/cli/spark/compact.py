"""`spark compact`: many small files of an archive become few."""

from __future__ import annotations

import datetime as dt

import click

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.session_options import SessionOptions, format_option, session_options
from pykafka_broker.spark.archive.settings import TableFormat
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted


class CompactedTable(NamedTuple):
    """The numbers of files that a compaction removed from a table and added to it."""

    table: str
    removed: int
    added: int


@click.command()
@click.argument("table", metavar="TABLE")
@format_option
@click.option(
    "--before",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="The first day that is left alone; by default today in UTC, to which jobs still append.",
)
@session_options
@json_option(CompactedTable)
def compact(
    table: str, table_format: TableFormat, before: dt.datetime | None, session: SessionOptions, output: Output
) -> None:
    """Rewrite the small files of an archive's past days as few large ones, with the same rows.

    Jobs that archive may run meanwhile. The old files stay until VACUUM of Delta or expire_snapshots of
    Iceberg removes them. A folder of Parquet is refused.
    """
    from pykafka_broker.spark.archive import Table
    from pykafka_broker.spark.archive import compact as compact_table

    place = Table(table_format, table).checked()
    with session.opened(f"compact {place.name}", place.jars) as spark:
        compacted = compact_table(spark, place, None if before is None else before.date())
    if compacted.removed:
        line = f"{counted(compacted.removed, 'file')} of {place.name} became {compacted.added:,}."
    else:
        line = f"No file of {place.name} is to be rewritten."
    output.show(CompactedTable(place.name, *compacted), [line])
