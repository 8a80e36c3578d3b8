"""`spark dead-letters`: the records of an archive that could not be decoded."""

from __future__ import annotations

import click

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.session_options import SessionOptions, format_option, session_options
from pykafka_broker.spark.archive.settings import TableFormat
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import printable


class DeadLetter(NamedTuple):
    """A record and why it could not be decoded."""

    topic: str
    partition: int
    offset: int
    reason: str


@click.command()
@click.argument("table", metavar="TABLE")
@format_option
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Show at most so many."
)
@session_options
@json_option(DeadLetter, key="records")
def dead_letters(
    table: str, table_format: TableFormat, limit: int, session: SessionOptions, output: Output
) -> None:
    """Show the records of an archive whose key or value could not be decoded, each with the reason.

    They are in the table like all others, with their bytes.
    """
    from pykafka_broker.spark.archive import Table
    from pykafka_broker.spark.archive import dead_letters as dead_letters_of
    from pykafka_broker.spark.archive.tables import require_archive, table_of

    place = Table(table_format, table).checked()
    with session.opened(f"dead letters of {place.name}", place.jars) as spark:
        archive = table_of(spark, place)
        require_archive(archive)
        columns = DeadLetter._fields
        found = dead_letters_of(archive.rows()).select(*columns).orderBy(*columns).limit(limit).collect()
    letters = [DeadLetter(*row) for row in found]
    output.show_all(letters, map(sentence, letters))


def sentence(letter: DeadLetter) -> str:
    """A record as a line."""
    return f"{letter.topic}-{letter.partition} at offset {letter.offset}: {printable(letter.reason)}"
