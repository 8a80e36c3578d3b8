"""The state of groups, as their coordinators describe it.

DescribeGroups describes the members of classic groups, ConsumerGroupDescribe those of consumer groups
(KIP-848), StreamsGroupDescribe those of Kafka Streams applications (KIP-1071): they are assigned tasks, which
are shown as the partitions that their active tasks read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pykafka_broker.cli.cells import Cell, Styled
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.offsets import LATEST, committed_offsets, told_offsets
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from pykafka_broker.protocol.topic_partition import TopicPartition, by_topic
from pykafka_broker.system.named_tuple import NamedTuple

#: The type of share groups, in lower case.
SHARE = "share"
#: The styles of states on a terminal: work goes on, is interrupted, does not go on.
STATE_STYLES = {"Stable": "green", "Empty": "dim", "Dead": "red"}
#: The meaning of a state of a group, and what to do where it lasts.
MEANINGS = {
    "Empty": ("no member is in it", "Start its consumers, if none of them runs."),
    "PreparingRebalance": (
        "its members are to join again",
        "The group waits for a member that sends heartbeats at most for max.poll.interval.ms, for another "
        "one at most for session.timeout.ms.",
    ),
    "CompletingRebalance": (
        "its leader is to assign the partitions",
        "The group waits for its leader's assignment.",
    ),
    "Assigning": ("its members are to get new assignments", ""),
    "Reconciling": (
        "some members have not given up, or taken over, their partitions",
        "A member gives up partitions in poll(): one that does not call it holds the others up.",
    ),
    "NotReady": (
        "its topology cannot run",
        "Source topics are missing, or their numbers of partitions do not fit: create or alter them.",
    ),
    "Stable": ("its members have been assigned their partitions, whether or not they read them", ""),
}


class Member(NamedTuple):
    """A member and its assignment."""

    consumer_id: str
    host: str
    client_id: str
    assignment: tuple[TopicPartition, ...]


class Coordinator(NamedTuple):
    """The broker that coordinates a group."""

    node_id: int
    host: str
    port: int


class Position(NamedTuple):
    """A group's position in a partition; None: nothing is committed, no leader tells the end, there is no
    owner.
    """

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


class Group(NamedTuple):
    """The description of a group; `offsets` is None if they were not asked for."""

    group: str
    state: str
    assignment_strategy: str
    coordinator: Coordinator
    members: tuple[Member, ...]
    offsets: tuple[Position, ...] | None = None


def state_cell(state: str) -> Cell:
    """The state of a group in a table."""
    return Styled(state, STATE_STYLES.get(state, "yellow")) if state else None


def partitions_text(partitions: Iterable[TopicPartition], between: str = " ") -> str:
    """Partitions as text: `clicks:3 orders:0,1`."""
    return between.join(
        f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic(sorted(partitions)).items()
    )


def list_groups(client: Client) -> dict[str, Any]:
    """The groups that all coordinators list, by group id.

    Raises:
        KafkaError, OSError: a broker has not listed its groups within the time-out.
    """
    return client.retrying(lambda: _list_groups(client))


def _list_groups(client: Client) -> dict[str, Any]:
    nodes = sorted(broker.node_id for broker in client.metadata([]).brokers)
    return {group.group_id: group for node_id in nodes for group in groups_at(client, node_id)}


def groups_at(client: Client, node_id: int) -> list[Any]:
    """The groups that a broker coordinates, as it lists them; asked for once.

    Raises:
        KafkaError, OSError: the broker does not tell.
    """
    from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest

    response = client.send(ListGroupsRequest(), node_id)
    check(response.error_code)
    return list(response.groups)


def describe_group(client: Client, name: str) -> Group:
    """A group of any kind that commits offsets.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    return client.at_coordinator(name, lambda node_id: _group(client, node_id, name))


def _group(client: Client, coordinator: int, name: str) -> Group:
    for of_kind in (_consumer_group, _streams_group):
        if (group := of_kind(client, coordinator, name)) is not None:
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
    return Group(name, answer.group_state, answer.protocol_data, address_of(client, coordinator), members)


def address_of(client: Client, coordinator: int) -> Coordinator:
    """A coordinator with its address."""
    return Coordinator(coordinator, *client.brokers.addresses[coordinator])


def _consumer_group(client: Client, coordinator: int, name: str) -> Group | None:
    """A KIP-848 group; None if it is none, or the broker does not know that kind."""
    from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    request = ConsumerGroupDescribeRequest(group_ids=[name], include_authorized_operations=False)
    if (answer := _answer(client, coordinator, request)) is None:
        return None
    members = tuple(
        Member(
            m.member_id,
            m.client_host,
            m.client_id,
            tuple(
                TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions
            ),
        )
        for m in answer.members
    )
    return Group(name, answer.group_state, answer.assignor_name, address_of(client, coordinator), members)


def _answer(client: Client, coordinator: int, request: Any) -> Any | None:
    """The description of the group in a request; None if it is of another kind, or that kind is unknown."""
    if api_key_of(request) not in client.connection(coordinator).versions:
        return None
    answer = client.send(request, coordinator).groups[0]
    if answer.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(answer.error_code, answer.error_message)
    return answer


def _streams_group(client: Client, coordinator: int, name: str) -> Group | None:
    """A group of a Kafka Streams application; None if it is none, or the broker does not know that kind."""
    from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

    request = StreamsGroupDescribeRequest(group_ids=[name], include_authorized_operations=False)
    if (answer := _answer(client, coordinator, request)) is None:
        return None
    topics_of = {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in (answer.topology.subtopologies or () if answer.topology is not None else ())
    }
    existing = client.metadata(sorted({topic for topics in topics_of.values() for topic in topics})).topics
    partitions = {(topic.name, p.partition_index) for topic in existing for p in topic.partitions}
    members = tuple(
        Member(
            m.member_id,
            m.client_host,
            m.client_id,
            tuple(
                TopicPartition(topic, partition)
                for tasks in m.assignment.active_tasks
                for topic in topics_of.get(tasks.subtopology_id, ())
                for partition in tasks.partitions
                # A topic with fewer partitions than another is not in all tasks of the subtopology.
                if (topic, partition) in partitions
            ),
        )
        for m in answer.members
    )
    return Group(name, answer.group_state, "", address_of(client, coordinator), members)


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a classic member, if its protocol is that of consumers."""
    if len(assignment) < 2:
        return ()
    version = min(int.from_bytes(assignment[:2], "big"), 3)
    try:
        decoded, _ = decode(ConsumerProtocolAssignment, version, assignment, 2)
    except ProtocolError:
        return ()
    return tuple(TopicPartition(t.topic, p) for t in decoded.assigned_partitions for p in t.partitions)


def positions(client: Client, group: Group) -> tuple[Position, ...]:
    """Each partition that has an offset or an owner, with its lag."""
    name = group.group
    committed = client.at_coordinator(name, lambda node_id: committed_offsets(client, node_id, name))
    owners = {(topic, number): member for member in group.members for topic, number in member.assignment}
    partitions = sorted({*committed, *owners})
    ends = told_offsets(client, dict.fromkeys(partitions, LATEST))
    found = []
    for partition in partitions:
        owner = owners.get(partition)
        offset, end = committed.get(partition), ends.get(partition)
        lag = None if offset is None or end is None else end - offset
        who = (None, None, None) if owner is None else (owner.consumer_id, owner.host, owner.client_id)
        found.append(Position(*partition, offset, end, lag, *who))
    return tuple(found)


def list_lines(states: Mapping[str, str], *, show_state: bool) -> Iterator[str]:
    """A list of groups, with their states if asked for."""
    if not show_state:
        yield from states
        return
    width = max([15, *map(len, states)])
    yield f"{'GROUP':<{width}} STATE"
    yield from (f"{name:<{width}} {state}" for name, state in states.items())
