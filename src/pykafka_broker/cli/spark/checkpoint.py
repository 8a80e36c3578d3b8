"""`spark checkpoint`: a streaming checkpoint beside its topics, and a way on where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.wording import counted
from pykafka_broker.spark.checkpoint.comparison import (
    SOUND,
    Question,
    Standing,
    State,
    Whither,
    compare,
    needs_repair,
)

if TYPE_CHECKING:
    from pykafka_broker.client.blocking import Client
    from pykafka_broker.spark.checkpoint.files import Checkpoint
    from pykafka_broker.spark.checkpoint.topics import Topic

#: The clocks of producers may be so much ahead of Spark's.
CLOCK_SKEW_MS = 60_000
FOLDER = click.Path(exists=True, file_okay=False)
STYLES = {Standing.FITS: "green", Standing.NEW: "green", Standing.DOUBTFUL: "yellow"}


@click.group(cls=Group)
def checkpoint() -> None:
    """Compare the checkpoint of a streaming query with its topics, and mend it."""


@checkpoint.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--remember", is_flag=True, help="Keep the ids of the topics in DIR, for the next look to compare."
)
@cluster_options
@json_option(State, key="partitions")
def inspect(folder: str, remember: bool, cluster: Cluster, output: Output) -> int:
    """Say whether a streaming query can go on from its checkpoint.

    For each partition: where the query reads next, what the topic holds, and what does not fit, such as
    records that retention has removed before they were read, or a topic that was created anew. Nothing is
    changed, but for the ids with --remember.

    Exit status 1 if the query cannot go on, or not without a loss.
    """
    from pykafka_broker.spark.checkpoint.files import read_checkpoint, write_topic_ids

    found = read_checkpoint(Path(folder))
    with cluster.connect() as client:
        topics = topics_of(client, found)
        states = states_of(client, found, topics)
    if remember:
        write_topic_ids(found.folder, {name: topic.topic_id for name, topic in topics.items()})
    output.show_all(states, map(sentence, states), [table(states)])
    return int(needs_repair(states))


@checkpoint.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--to",
    "whither",
    type=click.Choice([w.value for w in Whither]),
    default=Whither.EARLIEST.value,
    show_default=True,
    help="Where partitions go on whose position means nothing any more.",
)
@click.option(
    "--recreated",
    multiple=True,
    metavar="TOPIC",
    help="A topic that was created anew, although its offsets fit; repeatable.",
)
@click.option("--yes", is_flag=True, help="Write the files; without it, only say what would change.")
@cluster_options
@json_option(State, key="partitions")
def repair(
    folder: str, whither: str, recreated: tuple[str, ...], yes: bool, cluster: Cluster, output: Output
) -> int:
    """Let a streaming query go on where its topics allow it.

    Says for each partition what will be skipped or read again. With --yes it writes new files of offsets;
    each old one stays beside the new one, as <batch>.before-repair-1. Stop the query first. State that the
    query keeps, such as sums and windows, is left as it is.

    Exit status 1 if nothing was written that needs to be.
    """
    from pykafka_broker.spark.checkpoint.files import read_checkpoint, write_topic_ids
    from pykafka_broker.spark.checkpoint.repair import carry_out, plan

    found = read_checkpoint(Path(folder))
    with cluster.connect() as client:
        topics = topics_of(client, found)
        states = states_of(client, found, topics, recreated, Whither(whither))
    rewrites = plan(found, states)
    if yes and rewrites:
        backups = carry_out(rewrites)
        write_topic_ids(found.folder, {name: topic.topic_id for name, topic in topics.items()})
    shown = [state for state in states if state.standing not in SOUND]
    output.show_all(states, [f"{sentence(state)} {way_on(state)}".strip() for state in shown])
    if not rewrites:
        output.remark("Nothing is to be repaired.")
        return 0
    if not yes:
        output.remark("Nothing is changed yet: stop the query, and repeat with --yes.")
        return 1
    for backup in backups:
        output.remark(f"The old offsets are in {backup}.")
    return 0


def topics_of(client: Client, found: Checkpoint) -> dict[str, Topic]:
    """The topics that the checkpoint names, as they are now."""
    from pykafka_broker.spark.checkpoint import topics

    positions = found.positions()
    names = {topic for offsets in positions.values() for topic, _ in offsets}
    if not names:
        raise click.ClickException(f"{found.folder} is of a query that does not read Kafka.")
    return topics.look(client, names)


def states_of(
    client: Client,
    found: Checkpoint,
    topics: dict[str, Topic],
    recreated: Sequence[str] = (),
    whither: Whither = Whither.EARLIEST,
) -> list[State]:
    """Every partition of the checkpoint."""
    from pykafka_broker.spark.checkpoint.topics import first_since

    positions = found.positions()
    since = {}
    if found.last.planned_ms is not None and found.is_done:
        existing = {p for offsets in positions.values() for p in offsets if p[0] in topics}
        since = first_since(client, existing, found.last.planned_ms + CLOCK_SKEW_MS)
    question = Question(found.planned_ends(), found.topic_ids, since, recreated, whither)
    return compare(positions, topics, question)


# --- in words ---------------------------------------------------------------------------------------


def sentence(state: State) -> str:
    """The state of a partition, as a sentence."""
    where, at = f"{state.topic}-{state.partition}", state.position
    holds = f"the topic holds {state.log_start} to {state.log_end}"
    match state.standing:
        case Standing.FITS:
            assert state.log_end is not None and at is not None
            return (
                f"{where}: reads on at offset {at}, {counted(state.log_end - at, 'offset')} before the end."
            )
        case Standing.NEW:
            return f"{where}: a new partition, which is read from its beginning."
        case Standing.NEW_AND_TRIMMED:
            return (
                f"{where}: a new partition that begins at offset {state.log_start} already, which Spark "
                "takes for a loss of data."
            )
        case Standing.OVERTAKEN:
            assert state.log_start is not None
            return (
                f"{where}: offsets {at} to {state.log_start - 1} are gone and were not read: retention or "
                f"DeleteRecords removed them ({holds})."
            )
        case Standing.BEYOND_END:
            return (
                f"{where}: the checkpoint is at offset {at}, and {holds}: the topic was deleted and "
                "created anew, or lost its end."
            )
        case Standing.RECREATED:
            return f"{where}: the topic was created anew since ({holds}), so offset {at} means nothing."
        case Standing.DOUBTFUL:
            return (
                f"{where}: offset {at} fits, but records before it are younger than the last batch: the "
                "topic may have been created anew. If it was, repair with --recreated."
            )
        case Standing.MISSING:
            return f"{where}: does not exist any more; the checkpoint is at offset {at}."


def way_on(state: State) -> str:
    """The repair of a partition that does not fit, as a sentence; "" if a repair leaves it alone."""
    if state.standing is Standing.DOUBTFUL:
        return ""
    if state.repaired is None:
        return "It is taken out of the checkpoint."
    parts = [f"The query goes on at offset {state.repaired}"]
    if state.skipped:
        parts.append(f"skips {counted(state.skipped, 'offset')}")
    if state.read_again:
        parts.append(f"reads {counted(state.read_again, 'offset')} that may be new or known to it")
    return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."


def table(states: Sequence[State]) -> Table:
    """All partitions, for a terminal."""
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("READS NEXT", is_number=True),
        Column("LOG START", is_number=True, drop=2),
        Column("LOG END", is_number=True),
        Column("STANDING"),
    )
    unsound = [sentence(state) for state in states if state.standing not in SOUND]
    return Table(columns, list(map(_row, states)), footer="\n".join(unsound) or None)


def _row(state: State) -> list[Cell]:
    style = STYLES.get(state.standing, "red")
    place: Iterator[Cell] = iter((state.position, state.log_start, state.log_end))
    return [state.topic, state.partition, *place, Styled(state.standing.value, style)]
