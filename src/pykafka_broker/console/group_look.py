"""Many groups at a look: state, members and lag, with a few requests to each coordinator for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pykafka_broker.cli.doctor.groups import NOT_READY, REBALANCING, STREAMS
from pykafka_broker.cli.explain.history import BrokerHistories, OwnHistory, Untold
from pykafka_broker.cli.group_state import SHARE, groups_at
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import LATEST, committed_of_groups, told_offsets
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

#: The most partitions whose ends are asked for: groups whose partitions come after them have no lag.
PARTITIONS = 10_000
#: What is said beside the lags of many groups.
LAG_NOTE = f"Lag: in {PARTITIONS:,} partitions at most, and only where the group has committed an offset."
#: The states in which a group does not read, or not all that it should, except that it is Empty.
DISTURBED = REBALANCING | {NOT_READY, "Dead"}
#: The type of groups of the protocol of KIP-848, in lower case.
CONSUMER = "consumer"


class Listed(NamedTuple):
    """A group as its coordinator lists it. A state or a type may be ""."""

    name: str
    state: str
    group_type: str
    protocol_type: str
    coordinator: int

    @property
    def kind(self) -> str:
        """The type in lower case."""
        return self.group_type.lower()


class Seen(NamedTuple):
    """A group at a look; None: not told, or nothing is committed."""

    name: str
    state: str
    members: int | None
    lag: int | None


def listed(client: Client) -> tuple[list[Listed], list[str]]:
    """All groups by their names, and why brokers have told none, at once."""
    found: list[Listed] = []
    missing: list[str] = []
    for node_id in sorted(broker.node_id for broker in client.metadata([]).brokers):
        try:
            groups = groups_at(client, node_id)
        except (KafkaError, OSError) as error:
            missing.append(f"Broker {node_id} does not tell its groups: {error}")
        else:
            found += [
                Listed(g.group_id, g.group_state, g.group_type, g.protocol_type, node_id) for g in groups
            ]
    return sorted(found), missing


def look(client: Client, groups: Sequence[Listed]) -> list[Seen]:
    """The groups in the same order; what a coordinator does not tell at once is left out."""
    described: dict[str, Any] = {}
    lags: dict[str, int] = {}
    for (node_id, kind), names in _together(groups).items():
        with suppress(KafkaError, OSError):
            answers = client.send(_description_of(kind, names), node_id).groups
            described |= {answer.group_id: answer for answer in answers if not answer.error_code}
            if kind == SHARE:
                lags |= _share_lags(client, node_id, names)
    lags |= _lags(client, commits(client, groups))
    return [
        Seen(
            group.name,
            getattr(described.get(group.name), "group_state", group.state),
            len(described[group.name].members) if group.name in described else None,
            lags.get(group.name),
        )
        for group in groups
    ]


def causes(
    client: Client, own: OwnHistory | None, groups: Iterable[Listed]
) -> tuple[dict[str, str], list[str]]:
    """The first sentence about each group in which its coordinator sees a fault, and why coordinators tell
    none.
    """
    brokers = BrokerHistories(client, own)
    found: dict[str, str] = {}
    missing: dict[int, str] = {}
    for group in groups:
        if group.coordinator not in missing:
            try:
                told = brokers.history(group.coordinator, Kind.GROUP, group.name)
            except Untold as error:
                missing[group.coordinator] = f"broker {group.coordinator} {error}."
            else:
                fault = next((fact.text for fact in told.now if fact.remedy), None)
                if fault is not None:
                    found[group.name] = fault
    return found, [*missing.values()]


def commits(client: Client, groups: Iterable[Listed]) -> dict[str, dict[PartitionKey, int]]:
    """The committed offsets of groups, without share groups and those whose coordinators do not tell."""
    by_node: dict[int, list[str]] = {}
    for group in groups:
        if group.kind != SHARE:
            by_node.setdefault(group.coordinator, []).append(group.name)
    found: dict[str, dict[PartitionKey, int]] = {}
    for node_id, names in by_node.items():
        with suppress(KafkaError, OSError):
            for name, told in committed_of_groups(client, node_id, names).items():
                found[name] = {key: one.offset for key, one in told.items()}
    return found


def _together(groups: Iterable[Listed]) -> dict[tuple[int, str], list[str]]:
    """The names that one request asks about: those with one coordinator and of one type."""
    found: dict[tuple[int, str], list[str]] = {}
    for group in groups:
        found.setdefault((group.coordinator, group.kind), []).append(group.name)
    return found


def _description_of(kind: str, names: list[str]) -> object:
    if kind == CONSUMER:
        return ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    if kind == STREAMS:
        return StreamsGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    if kind == SHARE:
        return ShareGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    return DescribeGroupsRequest(groups=names)


def _lags(client: Client, committed: Mapping[str, Mapping[PartitionKey, int]]) -> dict[str, int]:
    """The lag of each group with an offset in a partition whose end is told."""
    asked: set[PartitionKey] = set()
    for offsets in committed.values():
        if len(asked | offsets.keys()) > PARTITIONS:
            break
        asked |= offsets.keys()
    ends = told_offsets(client, dict.fromkeys(asked, LATEST), at_once=True)
    return {
        name: sum(max(0, ends[key] - offset) for key, offset in offsets.items() if key in ends)
        for name, offsets in committed.items()
        if not ends.keys().isdisjoint(offsets)
    }


def _share_lags(client: Client, node_id: int, names: Iterable[str]) -> dict[str, int]:
    """The records that wait for each share group that has begun somewhere, which Kafka tells from 4.2 on."""
    asked = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
    answers = client.send(DescribeShareGroupOffsetsRequest(groups=asked), node_id).groups
    told = {
        group.group_id: [p.lag for t in group.topics for p in t.partitions if p.lag >= 0] for group in answers
    }
    return {name: sum(lags) for name, lags in told.items() if lags}
