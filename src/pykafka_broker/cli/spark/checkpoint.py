"""`spark checkpoint`: a streaming checkpoint compared with its topics, and its repair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.spark.checkpoint.comparison import SOUND, Standing, State, Whither, needs_repair
from pykafka_broker.spark.checkpoint.sentences import sentence, way_on

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
    from pykafka_broker.spark.checkpoint.inspection import states_of, topics_of

    found = read_checkpoint(Path(folder))
    with cluster.connect() as client:
        topics = topics_of(client, found)
        states = states_of(client, found, topics)
    if remember:
        # An id that was kept before stays: a topic that was created anew is another one until the repair.
        ids = {name: topic.topic_id for name, topic in topics.items()}
        write_topic_ids(found.folder, ids | found.topic_ids)
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
    help="Where partitions with a void position go on.",
)
@click.option(
    "--recreated",
    multiple=True,
    metavar="TOPIC",
    shell_complete=topic_names,
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
    from pykafka_broker.spark.checkpoint.inspection import states_of, topics_of
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
