"""`groups`: list, describe, reset and delete consumer groups; lines as of kafka-consumer-groups.sh.

The offsets of a group can be reset while it has no members, for any kind of group that commits offsets.
Share groups are listed, and can be deleted; `share_groups.py` has the rest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group as CommandGroup
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.columns import padded
from pykafka_broker.cli.group_offsets import chosen_partitions, delete_group, new_offsets, show_deleted
from pykafka_broker.cli.group_state import (
    SHARE,
    Group,
    describe_group,
    list_groups,
    list_lines,
    partitions_text,
    positions,
    state_cell,
)
from pykafka_broker.cli.names import group_names
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.reset_offsets import NewOffset, chosen_target, reset_options, show_new_offsets
from pykafka_broker.cli.suggestions import unknown_group
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_offsets, committed_offsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: States in which no member holds a partition, so that offsets may be changed from outside.
INACTIVE = frozenset({"Empty", "Dead"})


class ListedGroup(NamedTuple):
    """A group in a list; a field is None if the coordinator is too old to tell it."""

    group: str
    state: str | None
    type: str | None
    protocol_type: str


class DeletedGroup(NamedTuple):
    """A group that is deleted."""

    group: str


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
        # Fields that an old version of the answer lacks have their defaults, the empty text.
        ListedGroup(name, group.group_state or None, group.group_type or None, group.protocol_type)
        for name, group in sorted(listed.items())
    ]
    states = {each.group: each.state or "" for each in found}
    output.show_all(found, list_lines(states, show_state=show_state), [_list_table(found)])


def _list_table(found: Sequence[ListedGroup]) -> Table:
    columns = (Column("GROUP"), Column("STATE", drop=1), Column("TYPE", drop=2), Column("PROTOCOL", drop=3))
    rows: list[list[Cell]] = [
        [group.group, state_cell(group.state or ""), group.type, group.protocol_type or None]
        for group in found
    ]
    return Table(columns, rows)


@groups.command()
@click.argument("names", nargs=-1, metavar="[GROUP…]", shell_complete=group_names)
@click.option("--members", "show", flag_value="members", help="The members instead of the offsets.")
@click.option("--state", "show", flag_value="state", help="The state instead of the offsets.")
@click.option("--offsets", "show", flag_value="offsets", default="offsets", help="The offsets and lags.")
@cluster_options
@json_option(Group, key="groups")
def describe(names: tuple[str, ...], show: str, cluster: Cluster, output: Output) -> None:
    """Describe groups, all of them if none is named: where they are, how far behind, who is in them."""
    with cluster.connect() as client, output.one_by_one() as each:
        for name in names or _with_committed_offsets(client):
            group = _described(client, name)
            # Tables have the number of members.
            if not group.members and output.form is not Form.TABLES:
                output.note(f"\nConsumer group '{name}' has no active members.")
            if show == "members":
                each.show(group, member_lines(group), [member_table(group)])
            elif show == "state":
                each.show(group, state_lines(group), [state_table(group)])
            else:
                group = group._replace(offsets=positions(client, group))
                each.show(group, offset_lines(group), [offset_table(group)])


def _with_committed_offsets(client: Client) -> list[str]:
    """All groups but share groups, which commit no offsets."""
    return sorted(name for name, group in list_groups(client).items() if group.group_type.lower() != SHARE)


def _described(client: Client, name: str) -> Group:
    """A group that was asked for by name.

    Raises:
        KafkaError: the coordinator's error; for an unknown group, with a similar name that exists.
    """
    try:
        return describe_group(client, name)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        listed = list_groups(client).get(name)
        is_share_group = listed is not None and listed.group_type.lower() == SHARE
        hint = " `share-groups` has share groups." if is_share_group else unknown_group(client, name)
        raise KafkaError(error.code, f"{error.message}{hint}") from None


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
        (m.consumer_id, m.client_id, m.host, len(m.assignment), partitions_text(m.assignment))
        for m in group.members
    ]
    return Table(columns, rows, heading=group.group, details=_details(group))


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
    return ("state", state_cell(group.state)), ("members", len(group.members))


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP…", shell_complete=group_names)
@cluster_options
@json_option(DeletedGroup, key="groups")
def delete(names: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """Delete groups that have no members, and their offsets."""
    deleted, failures = [], []
    with cluster.connect() as client:
        for name in names:
            code = delete_group(client, name)
            if code:
                meant = unknown_group(client, name) if code == ErrorCode.GROUP_ID_NOT_FOUND else ""
                reason = f"{ErrorCode(code).message}{meant}"
                failures.append((name, reason))
            else:
                deleted.append(DeletedGroup(name))
    show_deleted("consumer groups", deleted, failures, output)


@groups.command("reset-offsets")
@reset_options("Every topic the group has an offset of.", group_names)
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
    how, value = chosen_target(topics, all_topics, target)
    with cluster.connect() as client:
        committed = client.at_coordinator(name, lambda node_id: committed_offsets(client, node_id, name))
        partitions = sorted(committed) if all_topics else chosen_partitions(client, topics)
        new = new_offsets(client, partitions, committed, how, value)
        if execute:
            check_inactive(client, name)
            client.at_coordinator(name, lambda node_id: commit_offsets(client, node_id, name, new))
    show_new_offsets(output, name, new, execute)


def check_inactive(client: Client, name: str) -> None:
    """Refuse to change the offsets of a group that has members.

    Raises:
        click.ClickException: it has members.
    """
    try:
        group = describe_group(client, name)
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if group.state not in INACTIVE:
        raise click.ClickException(
            f"Assignments can only be reset if the group '{name}' is inactive, but the current state is "
            f"{group.state}."
        )
