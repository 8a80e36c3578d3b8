"""`groups`: list, describe, reset and delete consumer groups; lines as of kafka-consumer-groups.sh.

The offsets of a group can be reset while it has no members, for any kind of group that commits offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group as CommandGroup
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.group_state import (
    Group,
    TopicPartition,
    describe_group,
    list_groups,
    positions,
)
from pykafka_broker.cli.offsets import parse_duration_ms, parse_number, parse_time_ms
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.suggestions import known_topic, unknown_group
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.metadata import leaders_of
from pykafka_broker.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, list_offsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: States in which no member holds a partition, so that offsets may be changed from outside.
INACTIVE = frozenset({"Empty", "Dead"})
#: The styles of states on a terminal: work goes on, is interrupted, does not go on.
STATE_STYLES = {"Stable": "green", "Empty": "dim", "Dead": "red"}


class ListedGroup(NamedTuple):
    """A group in a list; a field is None if the coordinator is too old to tell it."""

    group: str
    state: str | None
    type: str | None
    protocol_type: str


class DeletedGroup(NamedTuple):
    """A group that is deleted."""

    group: str


class NewOffset(NamedTuple):
    """The new offset of a group in a partition; committed if `executed`."""

    group: str
    topic: str
    partition: int
    new_offset: int
    executed: bool


@click.group(cls=CommandGroup)
def groups() -> None:
    """List, describe, reset and delete consumer groups."""


@groups.command("list")
@click.option("--state", "show_state", is_flag=True, help="With the state of each.")
@cluster_options
@json_option(ListedGroup, key="groups")
def list_(show_state: bool, cluster: Cluster, output: Output) -> None:
    """List all groups."""
    with cluster.connect() as client:
        listed = list_groups(client)
    found = [
        # Fields that an old version of the answer lacks have their defaults: no state and no type.
        ListedGroup(name, group.group_state or None, group.group_type or None, group.protocol_type)
        for name, group in sorted(listed.items())
    ]
    output.show_all(found, _list_lines(found, show_state=show_state), [_list_table(found)])


def _list_lines(found: Sequence[ListedGroup], *, show_state: bool) -> Iterator[str]:
    if not show_state:
        yield from (group.group for group in found)
        return
    width = max([15, *(len(group.group) for group in found)])
    yield f"{'GROUP':<{width}} STATE"
    yield from (f"{group.group:<{width}} {group.state or ''}" for group in found)


def _list_table(found: Sequence[ListedGroup]) -> Table:
    columns = (Column("GROUP"), Column("STATE", drop=1), Column("TYPE", drop=2), Column("PROTOCOL", drop=3))
    rows: list[list[Cell]] = [
        [group.group, _state(group.state or ""), group.type, group.protocol_type or None] for group in found
    ]
    return Table(columns, rows)


def _state(state: str) -> Cell:
    return Styled(state, STATE_STYLES.get(state, "yellow")) if state else None


@groups.command()
@click.argument("names", nargs=-1, metavar="[GROUP…]")
@click.option("--members", "show", flag_value="members", help="The members instead of the offsets.")
@click.option("--state", "show", flag_value="state", help="The state instead of the offsets.")
@click.option("--offsets", "show", flag_value="offsets", default="offsets", help="The offsets and lags.")
@cluster_options
@json_option(Group, key="groups")
def describe(names: tuple[str, ...], show: str, cluster: Cluster, output: Output) -> None:
    """Describe groups, all of them if none is named: where they are, how far behind, who is in them."""
    with cluster.connect() as client, output.one_by_one() as each:
        for name in names or sorted(list_groups(client)):
            coordinator = client.coordinator(name)
            group = _described(client, coordinator, name)
            # Tables have the number of members.
            if not group.members and output.form is not Form.TABLES:
                output.note(f"\nConsumer group '{name}' has no active members.")
            if show == "members":
                each.show(group, member_lines(group), [member_table(group)])
            elif show == "state":
                each.show(group, state_lines(group), [state_table(group)])
            else:
                group = group._replace(offsets=positions(client, coordinator, group))
                each.show(group, offset_lines(group), [offset_table(group)])


def _described(client: Client, coordinator: int, name: str) -> Group:
    """A group that was asked for by name.

    Raises:
        KafkaError: the coordinator's error; for an unknown group, with the name of the one that may be meant.
    """
    try:
        return describe_group(client, coordinator, name)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        raise KafkaError(error.code, f"{error.message}{unknown_group(client, name)}") from None


# -- lines of kafka-consumer-groups.sh


def member_lines(group: Group) -> Iterator[str]:
    """The members of a group, one a line."""
    rows = [(group.group, m.consumer_id, m.host, m.client_id, str(len(m.assignment))) for m in group.members]
    return padded(("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"), (15, 15, 15, 15, 15), rows)


def state_lines(group: Group) -> Iterator[str]:
    """The state of a group in one line."""
    node_id, host, port = group.coordinator
    row = (
        group.group,
        f"{host}:{port}  ({node_id})",
        group.assignment_strategy or "-",
        group.state,
        str(len(group.members)),
    )
    titles = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    return padded(titles, (15, 25, 20, 20, 0), [row])


def offset_lines(group: Group) -> Iterator[str]:
    """The positions of a group, one line for each partition."""
    rows = [
        (group.group, *("-" if value is None else str(value) for value in position))
        for position in group.offsets or ()
    ]
    titles = (
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    )
    return padded(titles, (15, 15, 10, 15, 15, 15, 15, 15, 0), rows)


def padded(titles: Sequence[str], widths: Sequence[int], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns of at least these widths, after an empty line; the last one is not padded if its width is 0."""
    lines = [titles, *rows]
    wide = [max(width, *(len(line[i]) for line in lines)) if width else 0 for i, width in enumerate(widths)]
    yield ""
    for line in lines:
        yield " ".join(f"{text:<{width}}" for text, width in zip(line, wide, strict=True))


# -- tables


def member_table(group: Group) -> Table:
    """The members of a group with their assignments."""
    columns = (
        Column("CONSUMER ID", is_id=True),
        Column("CLIENT ID", is_id=True, drop=2),
        Column("HOST", drop=3),
        Column("PARTITIONS", is_number=True),
        Column("ASSIGNMENT", drop=1),
    )
    rows = [
        (m.consumer_id, m.client_id, m.host, len(m.assignment), _assignment(m.assignment))
        for m in group.members
    ]
    return Table(columns, rows, heading=group.group, details=_details(group))


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    """As `orders:0,1 clicks:3`."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items())


def state_table(group: Group) -> Table:
    """The facts about the whole group."""
    node_id, host, port = group.coordinator
    details = (
        *_details(group),
        ("coordinator", f"{host}:{port} ({node_id})"),
        ("assignment strategy", group.assignment_strategy or "-"),
    )
    return Table(heading=group.group, details=details)


def offset_table(group: Group) -> Table:
    """The positions of a group, with the total lag of the partitions whose lag is known."""
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("CURRENT OFFSET", is_number=True, drop=1),
        Column("LOG END OFFSET", is_number=True, drop=2),
        Column("LAG", is_number=True),
        Column("CONSUMER ID", is_id=True, drop=3),
        Column("CLIENT ID", is_id=True, drop=4),
        Column("HOST", drop=5),
    )
    rows: list[list[Cell]] = [
        [
            position.topic,
            position.partition,
            position.current_offset,
            position.log_end_offset,
            Styled(str(position.lag), "yellow") if position.lag else position.lag,
            position.consumer_id,
            position.client_id,
            position.host,
        ]
        for position in group.offsets or ()
    ]
    lags = [position.lag for position in group.offsets or () if position.lag is not None]
    lag = sum(lags) if lags else None
    return Table(columns, rows, heading=group.group, details=(*_details(group), ("lag", lag)))


def _details(group: Group) -> tuple[tuple[str, Cell], ...]:
    return ("state", _state(group.state)), ("members", len(group.members))


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
@cluster_options
@json_option(DeletedGroup, key="groups")
def delete(names: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """Delete groups that have no members, and their offsets."""
    from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest

    deleted, failures = [], []
    with cluster.connect() as client:
        for name in names:
            request = DeleteGroupsRequest(groups_names=[name])
            code = client.send(request, client.coordinator(name)).results[0].error_code
            if code:
                meant = unknown_group(client, name) if code == ErrorCode.GROUP_ID_NOT_FOUND else ""
                reason = f"{ErrorCode(code).message}{meant}"
                failures.append(f"* Group '{name}' could not be deleted due to: {reason}")
            else:
                deleted.append(DeletedGroup(name))
    shown = ", ".join(f"'{group.group}'" for group in deleted)
    done = [f"Deletion of requested consumer groups ({shown}) was successful."] if deleted else []
    output.show_all(deleted, done)
    if failures:
        raise click.ClickException("Deletion of some consumer groups failed:\n" + "\n".join(failures))


@groups.command("reset-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "--topic", "topics", metavar="TOPIC[:P,P…]", multiple=True, help="A topic, or some of its partitions."
)
@click.option("--all-topics", is_flag=True, help="Every topic the group has an offset of.")
@click.option("--to-earliest", is_flag=True, help="The first record.")
@click.option("--to-latest", is_flag=True, help="The end.")
@click.option("--to-current", is_flag=True, help="Where the group is.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="This offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forwards, or backwards if negative.")
@click.option(
    "--to-datetime", metavar="TIME", help="The first record of this time, like 2026-01-31T12:00:00.000."
)
@click.option("--by-duration", metavar="PnDTnHnMnS", help="The first record since this long ago.")
@click.option("--execute", is_flag=True, help="Do it; otherwise only show it.")
@cluster_options
@json_option(NewOffset, key="offsets")
def reset_offsets(
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    cluster: Cluster,
    output: Output,
    **target: Any,
) -> None:
    """Move a group without members to other offsets.

    An offset outside of a partition's records becomes the nearest that is inside.
    """
    asked = [option for option, value in target.items() if value is not None and value is not False]
    if len(asked) != 1:
        raise click.UsageError(
            "Say where to: one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
            "--to-datetime, --by-duration."
        )
    if bool(topics) == all_topics:
        raise click.UsageError("Name the topics by --topic, or use --all-topics.")
    with cluster.connect() as client:
        coordinator = client.coordinator(name)
        committed = committed_offsets(client, coordinator, name)
        partitions = sorted(committed) if all_topics else chosen_partitions(client, topics)
        new = new_offsets(client, partitions, committed, asked[0], target[asked[0]])
        if execute:
            check_inactive(client, coordinator, name)
            commit_offsets(client, coordinator, name, new)
    moves = [NewOffset(name, *partition, offset, execute) for partition, offset in sorted(new.items())]
    columns = (Column("TOPIC"), Column("PARTITION", is_number=True), Column("NEW OFFSET", is_number=True))
    output.show_all(
        moves,
        padded(
            ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"),
            (15, 15, 10, 0),
            [tuple(map(str, move[:4])) for move in moves],
        ),
        [Table(columns, [move[1:4] for move in moves], heading=name)],
    )
    if not execute:
        output.note("\nNothing is changed yet: repeat with --execute.")


def chosen_partitions(client: Client, topics: Iterable[str]) -> list[tuple[str, int]]:
    """The partitions that `topic` and `topic:0,1` entries name.

    Raises:
        click.BadParameter: the text after a topic is not a list of partition numbers.
        KafkaError: there is no such topic or partition.
    """
    chosen = []
    for entry in topics:
        topic, colon, numbers = entry.partition(":")
        named = [number.strip() for number in numbers.split(",")] if colon else []
        if wrong := [number for number in named if not number.isdecimal()]:
            raise click.BadParameter(f"{wrong[0]!r} is no partition of {topic!r}", param_hint="--topic")
        existing = leaders_of(known_topic(client, topic))
        for partition in map(parse_number, named) if colon else existing:
            if partition not in existing:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic}' has no partition {partition}."
                )
            chosen.append((topic, partition))
    return chosen


def new_offsets(
    client: Client,
    partitions: Sequence[tuple[str, int]],
    committed: dict[tuple[str, int], int],
    how: str,
    value: Any,
) -> dict[tuple[str, int], int]:
    """The new offset of each partition."""
    first = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    end = list_offsets(client, dict.fromkeys(partitions, LATEST))
    wanted: Callable[[tuple[str, int]], int]
    if how in ("to_datetime", "by_duration"):
        import time

        since = (
            parse_time_ms(value)
            if how == "to_datetime"
            else max(int(time.time() * 1000) - parse_duration_ms(value), 0)
        )
        at_time = list_offsets(client, dict.fromkeys(partitions, since))
        # -1: no record is that young.
        wanted = lambda p: end[p] if at_time[p] < 0 else at_time[p]  # noqa: E731
    elif how == "shift_by":
        if missing := [p for p in partitions if p not in committed]:
            raise click.ClickException(
                f"Cannot shift {missing[0][0]}-{missing[0][1]}: it has no committed offset"
            )
        wanted = lambda p: committed[p] + value  # noqa: E731
    elif how == "to_offset":
        wanted = lambda p: int(value)  # noqa: E731
    elif how == "to_current":
        wanted = lambda p: committed.get(p, end[p])  # noqa: E731
    else:
        wanted = (first if how == "to_earliest" else end).__getitem__
    return {p: min(max(wanted(p), first[p]), end[p]) for p in partitions}


def check_inactive(client: Client, coordinator: int, name: str) -> None:
    """Refuse to move a group under the feet of its members.

    Raises:
        click.ClickException: it has members.
    """
    try:
        group = describe_group(client, coordinator, name)
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if group.state not in INACTIVE:
        raise click.ClickException(
            f"Assignments can only be reset if the group '{name}' is inactive, but the current state is "
            f"{group.state}."
        )
