"""`share-groups`: list, describe, reset and delete share groups (KIP-932); lines as of kafka-share-groups.sh.

The members of a share group share partitions, so it has no committed offsets. It starts reading at the first
record that is still to be delivered; this start offset can be set while the group has no members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from pykafka_broker.cli import Group as CommandGroup
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.columns import padded
from pykafka_broker.cli.group_offsets import chosen_partitions, delete_group, new_offsets, show_deleted
from pykafka_broker.cli.group_state import SHARE, list_groups, list_lines, partitions_text, state_cell
from pykafka_broker.cli.names import share_group_names, topic_names
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.reset_offsets import (
    ABSOLUTE_TARGETS,
    NewOffset,
    chosen_target,
    reset_options,
    show_new_offsets,
)
from pykafka_broker.cli.share_group_state import (
    ShareGroup,
    describe_share_group,
    forget_topics,
    set_start_offsets,
    start_offsets,
)
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple


class ListedShareGroup(NamedTuple):
    """A share group in a list."""

    group: str
    state: str


class DeletedShareGroup(NamedTuple):
    """A share group that is deleted."""

    group: str


class ForgottenTopic(NamedTuple):
    """A topic that a group should forget; with an error if the group has not."""

    group: str
    topic: str
    error: str | None


@click.group("share-groups", cls=CommandGroup)
def share_groups() -> None:
    """List, describe, reset and delete share groups."""


def _listed(client: Client) -> dict[str, str]:
    """All share groups and their states."""
    return {
        name: group.group_state
        for name, group in sorted(list_groups(client).items())
        if group.group_type.lower() == SHARE
    }


@share_groups.command("list")
@click.option("--state", "show_state", is_flag=True, help="With the state of each.")
@cluster_options
@json_option(ListedShareGroup, key="groups")
def list_(show_state: bool, cluster: Cluster, output: Output) -> None:
    """List all share groups."""
    with cluster.connect() as client:
        states = _listed(client)
    found = [ListedShareGroup(name, state) for name, state in states.items()]
    rows: list[list[Cell]] = [[group.group, state_cell(group.state)] for group in found]
    table = Table((Column("GROUP"), Column("STATE", drop=1)), rows)
    output.show_all(found, list_lines(states, show_state=show_state), [table])


@share_groups.command()
@click.argument("names", nargs=-1, metavar="[GROUP…]", shell_complete=share_group_names)
@click.option("--members", "show", flag_value="members", help="The members instead of the offsets.")
@click.option("--state", "show", flag_value="state", help="The state instead of the offsets.")
@click.option("--offsets", "show", flag_value="offsets", default="offsets", help="Offsets and lags.")
@click.option("--verbose", is_flag=True, help="With epochs.")
@cluster_options
@json_option(ShareGroup, key="groups")
def describe(names: tuple[str, ...], show: str, verbose: bool, cluster: Cluster, output: Output) -> None:
    """Describe share groups, all of them if none is named: where they start reading, and who is in them."""
    with cluster.connect() as client, output.one_by_one() as each:
        for name in names or _listed(client):
            group = _described(client, name)
            # Tables have the number of members.
            if show != "offsets" and not group.members and output.form is not Form.TABLES:
                output.note(f"\nShare group '{name}' has no active members.")
            if show == "members":
                each.show(group, member_lines(group, verbose=verbose), [member_table(group)])
            elif show == "state":
                each.show(group, state_lines(group, verbose=verbose), [state_table(group)])
            else:
                group = group._replace(offsets=start_offsets(client, name))
                each.show(group, offset_lines(group, verbose=verbose), [offset_table(group)])


def _described(client: Client, name: str) -> ShareGroup:
    """A share group that was asked for by name.

    Raises:
        KafkaError: the coordinator's error; for an unknown group, with a similar name that exists.
    """
    try:
        return describe_share_group(client, name)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        from pykafka_broker.config.suggestions import did_you_mean

        raise KafkaError(error.code, f"{error.message}{did_you_mean(name, _listed(client))}") from None


# -- lines of kafka-share-groups.sh


def member_lines(group: ShareGroup, *, verbose: bool) -> Iterator[str]:
    """The members of a group, one a line; nothing if there are none."""
    if not group.members:
        return iter(())
    epoch = ("MEMBER-EPOCH",) if verbose else ()
    titles = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *epoch, "ASSIGNMENT")
    rows = [
        (
            group.group,
            m.consumer_id,
            m.host,
            m.client_id,
            str(len(m.assignment)),
            *((str(m.member_epoch),) if verbose else ()),
            partitions_text(m.assignment, ";"),
        )
        for m in group.members
    ]
    return padded(titles, (15, 15, 15, 15, 12, *((13,) if verbose else ()), 0), rows)


def state_lines(group: ShareGroup, *, verbose: bool) -> Iterator[str]:
    """The state of a group in one line."""
    node_id, host, port = group.coordinator
    who, members = (group.group, f"{host}:{port}  ({node_id})", group.state), str(len(group.members))
    if not verbose:
        titles = ("GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS")
        return padded(titles, (15, 25, 15, 0), [(*who, members)])
    titles_with_epochs = (
        "GROUP",
        "COORDINATOR (ID)",
        "STATE",
        "GROUP-EPOCH",
        "ASSIGNMENT-EPOCH",
        "#MEMBERS",
    )
    row = (*who, str(group.group_epoch), str(group.assignment_epoch), members)
    return padded(titles_with_epochs, (15, 25, 15, 12, 17, 0), [row])


def offset_lines(group: ShareGroup, *, verbose: bool) -> Iterator[str]:
    """Where a group starts reading, one line for each partition."""
    if not group.offsets:
        return iter(("", f"Share group '{group.group}' has no offset information."))
    rows = [
        (
            group.group,
            each.topic,
            str(each.partition),
            *((_or_dash(each.leader_epoch),) if verbose else ()),
            _or_dash(each.start_offset),
            _or_dash(each.lag),
        )
        for each in group.offsets
    ]
    epoch = ("LEADER-EPOCH",) if verbose else ()
    titles = ("GROUP", "TOPIC", "PARTITION", *epoch, "START-OFFSET", "LAG")
    return padded(titles, (15, 15, 10, *((13,) if verbose else ()), 13, 0), rows)


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


# -- tables


def member_table(group: ShareGroup) -> Table:
    """The members of a group with their assignments."""
    columns = (
        Column("CONSUMER ID", is_id=True),
        Column("CLIENT ID", is_id=True, drop=2),
        Column("HOST", drop=3),
        Column("RACK", drop=5),
        Column("EPOCH", is_number=True, drop=4),
        Column("PARTITIONS", is_number=True),
        Column("ASSIGNMENT", drop=1),
    )
    rows = [
        (
            m.consumer_id,
            m.client_id,
            m.host,
            m.rack,
            m.member_epoch,
            len(m.assignment),
            partitions_text(m.assignment),
        )
        for m in group.members
    ]
    return Table(columns, rows, heading=group.group, details=_details(group))


def state_table(group: ShareGroup) -> Table:
    """The facts about the whole group."""
    node_id, host, port = group.coordinator
    details = (
        *_details(group),
        ("coordinator", f"{host}:{port} ({node_id})"),
        ("assignor", group.assignor),
        ("group epoch", group.group_epoch),
        ("assignment epoch", group.assignment_epoch),
    )
    return Table(heading=group.group, details=details)


def offset_table(group: ShareGroup) -> Table:
    """Where a group starts reading, with the total lag of the partitions whose lag is known."""
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("LEADER EPOCH", is_number=True, drop=2),
        Column("START OFFSET", is_number=True, drop=1),
        Column("LAG", is_number=True),
    )
    rows: list[list[Cell]] = [
        [
            each.topic,
            each.partition,
            each.leader_epoch,
            each.start_offset,
            Styled(str(each.lag), "yellow") if each.lag else each.lag,
        ]
        for each in group.offsets or ()
    ]
    lags = [each.lag for each in group.offsets or () if each.lag is not None]
    lag = sum(lags) if lags else None
    return Table(columns, rows, heading=group.group, details=(*_details(group), ("lag", lag)))


def _details(group: ShareGroup) -> tuple[tuple[str, Cell], ...]:
    return ("state", state_cell(group.state)), ("members", len(group.members))


# -- what changes a group


@share_groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP…", shell_complete=share_group_names)
@cluster_options
@json_option(DeletedShareGroup, key="groups")
def delete(names: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """Delete share groups that have no members, and what is known of their records."""
    deleted, failures = [], []
    with cluster.connect() as client:
        states = _listed(client)
        for name in dict.fromkeys(names):
            why = _why_not_deleted(client, name, states)
            if why is None:
                deleted.append(DeletedShareGroup(name))
            else:
                failures.append((name, why))
    show_deleted("share groups", deleted, failures, output)


def _why_not_deleted(client: Client, name: str, states: dict[str, str]) -> str | None:
    """Delete a share group, unless it is of another kind or has members; the reason if it is not deleted."""
    if name not in states:
        from pykafka_broker.config.suggestions import did_you_mean

        return f"Group '{name}' is not a share group.{did_you_mean(name, states)}"
    if states[name] not in ("Empty", "Dead"):
        return f"Share group '{name}' is not EMPTY."
    code = delete_group(client, name)
    return ErrorCode(code).message if code else None


@share_groups.command("reset-offsets")
@reset_options("Every topic that the group has read.", share_group_names, ABSOLUTE_TARGETS)
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
    """Let a group without members start reading elsewhere: all records from there on are delivered again.

    An offset outside of a partition's records becomes the nearest that is inside.
    """
    how, value = chosen_target(topics, all_topics, target)
    with cluster.connect() as client:
        check_empty(client, name)
        if all_topics:
            partitions = [(each.topic, each.partition) for each in start_offsets(client, name)]
        else:
            partitions = chosen_partitions(client, topics)
        new = new_offsets(client, partitions, {}, how, value)
        if execute and new:
            set_start_offsets(client, name, new)
    show_new_offsets(output, name, new, execute)


def check_empty(client: Client, name: str) -> None:
    """Refuse to change the start offsets of a group that has members; a group that does not exist has none.

    Raises:
        click.ClickException: it has members.
        KafkaError: an error of the coordinator.
    """
    try:
        group = describe_share_group(client, name)
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if group.members:
        raise click.ClickException(f"Share group '{name}' is not empty.")


@share_groups.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=share_group_names)
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC",
    multiple=True,
    required=True,
    shell_complete=topic_names,
    help="A topic to forget.",
)
@cluster_options
@json_option(ForgottenTopic, key="topics")
def delete_offsets(name: str, topics: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """Let a group without members forget topics: it then reads them as if for the first time."""
    with cluster.connect() as client:
        errors = forget_topics(client, name, topics)
    forgotten = [
        ForgottenTopic(name, topic, None if error is None else error.message)
        for topic, error in sorted(errors.items())
    ]
    rows = [(each.topic, f"Error: {each.error}" if each.error else "Successful") for each in forgotten]
    output.show_all(
        forgotten,
        padded(("TOPIC", "STATUS"), (15, 0), rows),
        [Table((Column("TOPIC"), Column("STATUS", is_prose=True)), rows, heading=name)],
    )
    if any(errors.values()):
        raise click.ClickException("Some topics were not forgotten.")
