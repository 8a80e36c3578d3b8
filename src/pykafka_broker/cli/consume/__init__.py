"""`consume`: read the records of a topic between two given points.

    __init__.py   the command
    printing.py   its loop
    places.py     where it begins and ends, and the offsets of a group
    reader.py     fetching
    share.py      reading as a member of a share group
    lines.py      a record as a line

The default output is that of kafka-console-consumer.sh with the same parts printed; `--json` prints one
object a line. With `--group` it starts at the group's committed offsets and commits its progress, as a
consumer that assigns partitions to itself: it does not join, so a group with members refuses its commits. It
commits printed records only, every few seconds and at its end, whatever ended it. With `--share` it is a
member of a share group, as kafka-console-share-consumer.sh is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pykafka_broker.cli import progress
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.consume.lines import PARTS, JsonOutput, Printed, TextOutput
from pykafka_broker.cli.consume.places import Commits, Places
from pykafka_broker.cli.consume.printing import Commitments, Printer, Source
from pykafka_broker.cli.consume.reader import Reader
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.names import group_names, share_group_names, topic_names
from pykafka_broker.cli.options import INT32_MAX, Seconds, gathered, list_option, progress_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.cli.consume.share import ShareReader


class Wanted(NamedTuple):
    """The records to read; the fields are options."""

    partitions: tuple[int, ...]
    start: str | None
    until: str | None
    max_messages: int | None
    idle_s: float | None
    group: str | None
    read_committed: bool


class Shared(NamedTuple):
    """Reading as a member of a share group; the fields are options."""

    share: str | None
    reject: bool
    release: bool

    def check(self, wanted: Wanted) -> None:
        """Refuse what a share group decides for itself.

        Raises:
            click.UsageError: an option that does not go along is given.
        """
        if self.share is None:
            if self.reject or self.release:
                raise click.UsageError("--reject and --release need --share.")
            return
        if self.reject and self.release:
            raise click.UsageError("A record is either rejected or released.")
        others = {
            "--partition": wanted.partitions,
            "--from": wanted.start,
            "--until": wanted.until,
            "--group": wanted.group,
            "--read-committed": wanted.read_committed,
        }
        if given := [name for name, value in others.items() if value]:
            raise click.UsageError(
                f"{given[0]} does not go along with --share: the group has its own share.auto.offset.reset "
                "and share.isolation.level."
            )


@click.command()
@click.argument("topic", shell_complete=topic_names)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0, INT32_MAX),
    multiple=True,
    help="Only this one; repeatable.",
)
@click.option(
    "-f",
    "--from",
    "start",
    metavar="WHERE",
    help="beginning (the default), end, an offset, -N for the last N, or @TIME (milliseconds or ISO 8601).",
)
@click.option("-u", "--until", metavar="WHERE", help="end, an offset, or @TIME; by default goes on for ever.")
@click.option("-n", "--max-messages", type=click.IntRange(min=1), help="Stop after this many.")
@click.option(
    "-i", "--idle", "idle_s", type=Seconds(0), metavar="SECONDS", help="Stop after this long without records."
)
@click.option(
    "-g",
    "--group",
    shell_complete=group_names,
    help="Start at the offsets of this group, and commit the progress.",
)
@click.option("--read-committed", is_flag=True, help="Leave out records of open and aborted transactions.")
@click.option(
    "--share",
    metavar="GROUP",
    shell_complete=share_group_names,
    help="Read as a member of this share group, and accept records.",
)
@click.option("--reject", is_flag=True, help="With --share: reject records, so that none is delivered again.")
@click.option("--release", is_flag=True, help="With --share: release records for another delivery.")
@list_option(
    "--print",
    "parts",
    metavar="PART,…",
    default="value",
    show_default=True,
    help=f"Any of {', '.join(PARTS)}, or all; in this order.",
)
@click.option("--key-separator", default="\t", metavar="TEXT", help="What stands between parts [a tab].")
@click.option(
    "--null-marker", default="null", show_default=True, metavar="TEXT", help="What stands for null."
)
@progress_option
@cluster_options
@json_option(None, streams=True)
@gathered(Wanted, "wanted")
@gathered(Shared, "shared")
@gathered(Printed, "printed")
def consume(
    topic: str,
    wanted: Wanted,
    shared: Shared,
    printed: Printed,
    show_progress: bool,
    cluster: Cluster,
    output: Output,
) -> int:
    """Read records of TOPIC.

    Ctrl-C ends it in good order: with --group, its progress is committed; with --share, the printed records
    are acknowledged.
    """
    shared.check(wanted)
    text = TextOutput(printed.chosen_parts(), printed.key_separator, printed.null_marker)
    show = JsonOutput(topic) if output.form is Form.JSON else text
    how = progress.shown(is_asked=show_progress, results_come=True)
    with cluster.connect() as client:
        interrupts = Interrupts()
        reader: Source
        commits: Commitments
        if shared.share is None:
            places = Places(client, topic, wanted.partitions, read_committed=wanted.read_committed)
            positions = places.start(wanted.start, wanted.group)
            ends = None if wanted.until is None else places.end(wanted.until)
            commits = Commits(client, topic, wanted.group, positions)
            reader = Reader(
                client, topic, positions, ends, read_committed=wanted.read_committed, interrupts=interrupts
            )
        else:
            reader = commits = _share_reader(client, topic, shared, wanted.max_messages, interrupts)
        printer = Printer(reader, show, commits, interrupts)
        try:
            with interrupts, progress.progress(topic, how, total_records=reader.distance) as telling:
                try:
                    printer.run(wanted.max_messages, wanted.idle_s, telling)
                except KeyboardInterrupt:
                    # A person ends it so. A second signal, during what follows, is passed on.
                    pass
                finally:
                    printer.end()
        finally:
            click.echo(f"Processed a total of {printer.count} messages", err=True)
            for refusal in commits.refused:
                click.echo(f"Not acknowledged: {refusal}", err=True)
    return interrupts.exit_status


def _share_reader(
    client: Client, topic: str, shared: Shared, max_messages: int | None, interrupts: Interrupts
) -> ShareReader:
    # Imported late: most reads do not need it.
    from pykafka_broker.cli.consume.share import ShareReader
    from pykafka_broker.client.core.share_group import Acknowledgement

    assert shared.share is not None
    acknowledgement = (
        Acknowledgement.REJECT
        if shared.reject
        else Acknowledgement.RELEASE
        if shared.release
        else Acknowledgement.ACCEPT
    )
    return ShareReader(
        client, topic, shared.share, acknowledgement, max_records=max_messages, interrupts=interrupts
    )
