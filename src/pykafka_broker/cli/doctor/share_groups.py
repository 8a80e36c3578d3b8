"""Share groups (KIP-932) that make no progress, and why.

Members acknowledge records one by one, so the number of waiting records may fall while the start offset
stays. A group is stuck in a partition if, between two looks a few seconds apart, the start offset stays and
the number of waiting records does not fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka_broker.cli.doctor.wording import clients, shown
from pykafka_broker.cli.share_group_state import (
    ShareGroup,
    ShareMember,
    describe_share_group,
    start_offsets,
)
from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.doctor.topics import Offsets
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.wording import argument, counted


def look(client: Client, name: str) -> ShareGroup:
    """The present state of a group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    return describe_share_group(client, name)._replace(offsets=start_offsets(client, name))


def places(seen: ShareGroup) -> set[PartitionKey]:
    """The partitions in which the group has started, or has a member."""
    return {*_started(seen), *_owners(seen)}


def may_be_stuck(seen: ShareGroup, offsets: Mapping[PartitionKey, Offsets]) -> bool:
    """Whether a second look is needed: records wait for members."""
    return bool(seen.members) and bool(_waiting(seen, offsets) or _silent(seen, offsets))


def judge(
    before: ShareGroup, after: ShareGroup, offsets: Mapping[PartitionKey, Offsets], seconds: float
) -> list[Finding]:
    """Find the reasons why a group makes no progress, from two looks at it.

    Args:
        before: The first look.
        after: The second look.
        offsets: The offsets of the partitions of `places`; without those that are gone.
        seconds: The time between the looks.
    """
    waiting = _waiting(after, offsets)
    findings = []
    if after.members:
        owners, earlier = _owners(after), _waiting(before, offsets)
        stuck = [
            p
            for p in sorted(waiting)
            if p in owners
            and _started(before).get(p) == _started(after)[p]
            and waiting[p] >= earlier.get(p, 0)
        ]
        if stuck:
            findings.append(_not_moving(after, stuck, waiting, seconds))
        silent = [p for p in _silent(after, offsets) if p in _silent(before, offsets)]
        if silent:
            findings.append(_never_acknowledged(after, silent, seconds))
    elif waiting:
        findings.append(_without_members(after, waiting))
    if findings:
        return findings
    members = counted(len(after.members), "member")
    behind = counted(sum(waiting.values()), "record")
    message = f"Share group {after.group!r} is {after.state}: {members}, {behind} behind."
    return [ok("groups", after.group, message)]


# --- what is seen -----------------------------------------------------------------------------------


def _started(seen: ShareGroup) -> dict[PartitionKey, int]:
    """The offset at which the group starts reading each partition, if that is decided."""
    return {
        (each.topic, each.partition): each.start_offset
        for each in seen.offsets or ()
        if each.start_offset is not None
    }


def _owners(seen: ShareGroup) -> dict[PartitionKey, list[ShareMember]]:
    """The members that read each partition."""
    owners: dict[PartitionKey, list[ShareMember]] = {}
    for member in seen.members:
        for place in member.assignment:
            owners.setdefault((place.topic, place.partition), []).append(member)
    return owners


def _waiting(seen: ShareGroup, offsets: Mapping[PartitionKey, Offsets]) -> dict[PartitionKey, int]:
    """The number of waiting records, of partitions that have some."""
    lags = {(each.topic, each.partition): each.lag for each in seen.offsets or ()}
    waiting = {}
    for place, start_offset in _started(seen).items():
        lag = lags[place]
        if lag is None and place in offsets:
            # Brokers before Kafka 4.2 do not tell.
            lag = offsets[place].end - start_offset
        if lag is not None and lag > 0:
            waiting[place] = lag
    return waiting


def _silent(seen: ShareGroup, offsets: Mapping[PartitionKey, Offsets]) -> list[PartitionKey]:
    """The partitions with records and members in which the group has never acknowledged a record."""
    started = _started(seen)
    return [
        place
        for place in sorted(_owners(seen))
        if place not in started and place in offsets and offsets[place].end > offsets[place].log_start
    ]


# --- what it means ----------------------------------------------------------------------------------


def _without_members(group: ShareGroup, waiting: Mapping[PartitionKey, int]) -> Finding:
    return warning(
        "groups",
        group.group,
        f"Share group {group.group!r} has no members: {counted(sum(waiting.values()), 'record')} wait in "
        f"{counted(len(waiting), 'partition')}, and no consumer reads them.",
        "Start its consumers. If they run, they use another group.id, reach another cluster, or cannot join: "
        "their log says which. If the group is no longer used:\n"
        f"  pykafka-broker share-groups delete {argument(group.group)}",
    )


def _not_moving(
    group: ShareGroup, stuck: Sequence[PartitionKey], waiting: Mapping[PartitionKey, int], seconds: float
) -> Finding:
    owners = _owners(group)
    who = clients(member for place in stuck for member in owners[place])
    return problem(
        "groups",
        group.group,
        f"Share group {group.group!r} has not moved in {shown(stuck)} for {seconds:g} s, and no fewer "
        f"records wait there than before: {sum(waiting[p] for p in stuck):,} ({who}).",
        "The members read without acknowledging, are busy with their records, or release the same record "
        "again and again: their log says which. What a member has is given to others after "
        "share.record.lock.duration.ms (30 s by default), and is given up after share.delivery.count.limit "
        "deliveries (5).",
    )


def _never_acknowledged(group: ShareGroup, silent: Sequence[PartitionKey], seconds: float) -> Finding:
    owners = _owners(group)
    who = clients(member for place in silent for member in owners[place])
    return warning(
        "groups",
        group.group,
        f"Share group {group.group!r} has never acknowledged a record of {shown(silent)}, nor in these "
        f"{seconds:g} s ({who}).",
        "By default a share group begins behind the records that are there: share.auto.offset.reset=latest. "
        "To let it read them, stop its members and\n"
        f"  pykafka-broker share-groups reset-offsets {argument(group.group)} --topic {silent[0][0]} "
        "--to-earliest --execute",
    )
