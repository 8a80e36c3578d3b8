"""`groups`: list, describe, reset and delete consumer groups; output as of kafka-consumer-groups.sh.

Offsets can be reset of groups without members, of any kind that keeps committed offsets. Members are
described of classic groups by DescribeGroups, of consumer groups (KIP-848) by ConsumerGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import click

from pykafka_broker.cli.client import Client, check
from pykafka_broker.cli.offsets import (
    EARLIEST,
    LATEST,
    list_offsets,
    parse_duration_ms,
    parse_number,
    parse_time_ms,
)
from pykafka_broker.cli.options import cluster_options
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment

#: States in which nobody holds a partition, so that offsets may be changed from outside.
INACTIVE = frozenset({"Empty", "Dead"})


class Member(NamedTuple):
    """A member and what it is assigned."""

    member_id: str
    host: str
    client_id: str
    partitions: tuple[tuple[str, int], ...]


class Group(NamedTuple):
    """What a group is like."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]


@click.group()
def groups() -> None:
    """List, describe, reset and delete consumer groups."""


@groups.command("list")
@click.option("--state", "show_state", is_flag=True, help="With the state of each.")
@cluster_options
def list_(show_state: bool, bootstrap_server: str, timeout_s: float) -> None:
    """List all groups."""
    with Client(bootstrap_server, timeout_s) as client:
        found = list_groups(client)
    names = sorted(found)
    if not show_state:
        for name in names:
            click.echo(name)
        return
    width = max((len(name) for name in names), default=0)
    width = max(width, 15)
    click.echo(f"{'GROUP':<{width}} STATE")
    for name in names:
        click.echo(f"{name:<{width}} {found[name].group_state}")


def list_groups(client: Client) -> dict[str, Any]:
    """What every coordinator lists, by group id."""
    from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest

    found = {}
    for node_id in sorted(broker.node_id for broker in client.metadata([]).brokers):
        response = client.send(ListGroupsRequest(), node_id)
        check(response.error_code)
        found.update({group.group_id: group for group in response.groups})
    return found


@groups.command()
@click.argument("names", nargs=-1, metavar="[GROUP…]")
@click.option("--members", "show", flag_value="members", help="The members instead of the offsets.")
@click.option("--state", "show", flag_value="state", help="The state instead of the offsets.")
@click.option("--offsets", "show", flag_value="offsets", default="offsets", help="The offsets and lags.")
@cluster_options
def describe(names: tuple[str, ...], show: str, bootstrap_server: str, timeout_s: float) -> None:
    """Describe groups, all of them if none is named: where they are, how far behind, who is in them."""
    with Client(bootstrap_server, timeout_s) as client:
        for name in names or sorted(list_groups(client)):
            coordinator = client.coordinator(name)
            group = describe_group(client, coordinator, name)
            if not group.members:
                click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
            if show == "members":
                show_members(group)
            elif show == "state":
                show_state(group, client.brokers[coordinator], coordinator)
            else:
                show_offsets(client, coordinator, group)


def describe_group(client: Client, coordinator: int, name: str) -> Group:
    """A group of either kind.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or what the coordinator says.
    """
    if (group := _consumer_group(client, coordinator, name)) is not None:
        return group
    from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest

    answer = client.send(DescribeGroupsRequest(groups=[name]), coordinator).groups[0]
    check(answer.error_code, getattr(answer, "error_message", None))
    if answer.group_state == "Dead":
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    members = tuple(
        Member(m.member_id, m.client_host, m.client_id, _assigned(bytes(m.member_assignment)))
        for m in answer.members
    )
    return Group(name, answer.group_state, answer.protocol_data, members)


def _consumer_group(client: Client, coordinator: int, name: str) -> Group | None:
    """A KIP-848 group; None if it is none, or the broker does not know that kind."""
    from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    request = ConsumerGroupDescribeRequest(group_ids=[name], include_authorized_operations=False)
    if request.api_key not in client.connection(coordinator).versions:  # type: ignore[attr-defined]
        return None
    answer = client.send(request, coordinator).groups[0]
    if answer.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(answer.error_code, answer.error_message)
    members = tuple(
        Member(
            m.member_id,
            m.client_host,
            m.client_id,
            tuple((t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions),
        )
        for m in answer.members
    )
    return Group(name, answer.group_state, answer.assignor_name, members)


def _assigned(assignment: bytes) -> tuple[tuple[str, int], ...]:
    """The partitions of a classic member, as far as its protocol is the consumers' one."""
    if len(assignment) < 2:
        return ()
    version = min(int.from_bytes(assignment[:2], "big"), 3)
    try:
        decoded, _ = decode(ConsumerProtocolAssignment, version, assignment, 2)
    except ProtocolError:
        return ()
    return tuple((t.topic, p) for t in decoded.assigned_partitions for p in t.partitions)


def show_members(group: Group) -> None:
    """The members of a group, one a line."""
    rows = [(group.group_id, m.member_id, m.host, m.client_id, str(len(m.partitions))) for m in group.members]
    show_table(("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"), (15, 15, 15, 15, 15), rows)


def show_state(group: Group, address: tuple[str, int], coordinator: int) -> None:
    """The state of a group in one line."""
    host, port = address
    row = (
        group.group_id,
        f"{host}:{port}  ({coordinator})",
        group.assignor or "-",
        group.state,
        str(len(group.members)),
    )
    titles = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    show_table(titles, (15, 25, 20, 20, 0), [row])


def show_offsets(client: Client, coordinator: int, group: Group) -> None:
    """Each partition that has an offset or an owner, with its lag."""
    committed = committed_offsets(client, coordinator, group.group_id)
    owners = {partition: member for member in group.members for partition in member.partitions}
    partitions = sorted({*committed, *owners})
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST), missing_ok=True)
    rows = []
    for partition in partitions:
        owner = owners.get(partition)
        offset, end = committed.get(partition), ends.get(partition)
        lag = None if offset is None or end is None else end - offset
        who = ("-", "-", "-") if owner is None else (owner.member_id, owner.host, owner.client_id)
        numbers = tuple("-" if number is None else str(number) for number in (offset, end, lag))
        rows.append((group.group_id, partition[0], str(partition[1]), *numbers, *who))
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
    show_table(titles, (15, 15, 10, 15, 15, 15, 15, 15, 0), rows)


def show_table(titles: Sequence[str], widths: Sequence[int], rows: Iterable[Sequence[str]]) -> None:
    """Columns of at least these widths, after an empty line; the last one is not padded if its width is 0."""
    lines = [titles, *rows]
    wide = [max(width, *(len(line[i]) for line in lines)) if width else 0 for i, width in enumerate(widths)]
    click.echo()
    for line in lines:
        click.echo(" ".join(f"{text:<{width}}" for text, width in zip(line, wide, strict=True)))


def committed_offsets(client: Client, coordinator: int, name: str) -> dict[tuple[str, int], int]:
    """Every committed offset of a group."""
    from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    connection = client.connection(coordinator)
    request = OffsetFetchRequest(
        group_id=name, topics=None, groups=[OffsetFetchRequestGroup(group_id=name, topics=None)]
    )
    # From version 10 on topics have ids instead of names.
    version = min(9, connection.version_of(request))
    response = connection.send(request, version)
    answer = response.groups[0] if version >= 8 else response
    check(answer.error_code)
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
@cluster_options
def delete(names: tuple[str, ...], bootstrap_server: str, timeout_s: float) -> None:
    """Delete groups that have no members, and their offsets."""
    from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest

    failures = []
    with Client(bootstrap_server, timeout_s) as client:
        for name in names:
            request = DeleteGroupsRequest(groups_names=[name])
            code = client.send(request, client.coordinator(name)).results[0].error_code
            if code:
                failures.append(f"* Group '{name}' could not be deleted due to: {ErrorCode(code).message}")
    deleted = [name for name in names if not any(f"'{name}'" in failure for failure in failures)]
    if deleted:
        shown = ", ".join(f"'{name}'" for name in deleted)
        click.echo(f"Deletion of requested consumer groups ({shown}) was successful.")
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
def reset_offsets(
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    bootstrap_server: str,
    timeout_s: float,
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
    with Client(bootstrap_server, timeout_s) as client:
        coordinator = client.coordinator(name)
        committed = committed_offsets(client, coordinator, name)
        partitions = sorted(committed) if all_topics else chosen_partitions(client, topics)
        new = new_offsets(client, partitions, committed, asked[0], target[asked[0]])
        if execute:
            check_inactive(client, coordinator, name)
            commit(client, coordinator, name, new)
    rows = [(name, topic, str(partition), str(offset)) for (topic, partition), offset in sorted(new.items())]
    show_table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), (15, 15, 10, 0), rows)
    if not execute:
        click.echo("\nNothing is changed yet: repeat with --execute.", err=True)


def chosen_partitions(client: Client, topics: Iterable[str]) -> list[tuple[str, int]]:
    """The partitions that `topic` and `topic:0,1` entries name.

    Raises:
        click.BadParameter: what stands behind a topic is not numbers of partitions.
        KafkaError: there is no such topic or partition.
    """
    chosen = []
    for entry in topics:
        topic, colon, numbers = entry.partition(":")
        named = [number.strip() for number in numbers.split(",")] if colon else []
        if wrong := [number for number in named if not number.isdecimal()]:
            raise click.BadParameter(f"{wrong[0]!r} is no partition of {topic!r}", param_hint="--topic")
        existing = client.leaders(topic)
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
    """Where each partition goes."""
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


def commit(client: Client, coordinator: int, name: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commit offsets from outside of the group.

    Raises:
        KafkaError: the coordinator refused one of them.
    """
    from pykafka_broker.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
        )
    request = OffsetCommitRequest(
        group_id=name,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=ps) for topic, ps in by_topic.items()],
    )
    connection = client.connection(coordinator)
    # From version 10 on topics have ids instead of names.
    response = connection.send(request, min(9, connection.version_of(request)))
    for topic in response.topics:
        for partition in topic.partitions:
            check(partition.error_code)
