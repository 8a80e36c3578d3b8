"""Groups that commit offsets and make no progress, and why: of consumers, with both protocols, and of Kafka
Streams.

Two looks, a few seconds apart, show whether a group moves: a committed offset may stay where it is although
records follow it, or a rebalance may not end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pykafka_broker.cli.doctor.wording import clients, shown
from pykafka_broker.cli.group_state import MEANINGS, Group, describe_group, list_groups
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import committed_offsets
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.doctor.topics import Offsets
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import argument, counted

#: States of a rebalance.
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
#: The type of groups of Kafka Streams, in lower case.
STREAMS = "streams"
#: The state of such a group whose topics are not as its topology needs them.
NOT_READY = "NotReady"
#: Kafka Streams commits so often by default.
STREAMS_COMMIT_S = 30
#: The protocol types of groups that read records: Connect's are others.
READING = frozenset({"", "consumer", "streams", "share"})
COMES_AND_GOES = (
    "If that goes on, these clients fail, or are closed, soon after they have joined: their log says why."
)
#: The most groups that are looked at when none is named.
MOST_GROUPS = 100


class Look(NamedTuple):
    """A group at one moment."""

    group: Group
    committed: Mapping[PartitionKey, int]
    is_of_streams: bool = False


def types(client: Client) -> dict[str, str]:
    """The groups that read records, in order, and the type of each in lower case, "" if it is not told."""
    found = sorted(list_groups(client).items())
    return {name: group.group_type.lower() for name, group in found if group.protocol_type in READING}


def look(client: Client, name: str, group_type: str) -> Look:
    """The present state of a group that is not a share group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    group = describe_group(client, name)
    committed = client.at_coordinator(name, lambda node_id: committed_offsets(client, node_id, name))
    return Look(group, committed, group_type == STREAMS)


def places(seen: Look) -> set[PartitionKey]:
    """The partitions in which a group has an offset or a member."""
    assigned = {(p.topic, p.partition) for member in seen.group.members for p in member.assignment}
    return {*seen.committed, *assigned}


def may_be_stuck(seen: Look, offsets: Mapping[PartitionKey, Offsets]) -> bool:
    """Whether a second look is needed: the group rebalances, or records wait for members."""
    if not seen.group.members:
        return False
    return seen.group.state in REBALANCING or any(
        offsets[p].end > seen.committed.get(p, offsets[p].log_start) for p in places(seen) if p in offsets
    )


# --- what it means ----------------------------------------------------------------------------------


def judge_missing(name: str, existing: Sequence[str]) -> Finding:
    """A group that was named and does not exist."""
    from pykafka_broker.config.suggestions import did_you_mean

    return problem(
        "groups",
        name,
        f"Group {name!r} does not exist: it has neither members nor committed offsets."
        f"{did_you_mean(name, existing)}",
        "Check group.id of the consumers, and whether they reach this cluster. A consumer that assigns its "
        "partitions itself, as Spark's does, has no group unless it commits. With ACLs, a group is listed "
        "only to those who may DESCRIBE it.",
    )


def judge(
    before: Look,
    after: Look,
    offsets: Mapping[PartitionKey, Offsets],
    seconds: float,
    led: Collection[PartitionKey],
) -> list[Finding]:
    """Find the reasons why a group makes no progress, from two looks at it.

    Args:
        before: The first look.
        after: The second look.
        offsets: The offsets of the partitions of `places`; without those that are gone, or were not asked.
        seconds: The time between the looks.
        led: The partitions that exist and have a leader.
    """
    name = after.group.group
    lags = {
        partition: offsets[partition].end - offset
        for partition, offset in after.committed.items()
        if partition in offsets and offsets[partition].end > offset
    }
    findings = [*_about_places(name, after.committed, offsets, led)]
    if not after.group.members:
        if lags:
            findings.append(_without_members(before.group, after.group, lags, seconds))
        elif not after.committed:
            text = (
                "neither members nor committed offsets: its consumers, if they run, end before they commit."
            )
            findings.append(ok("groups", name, f"Group {name!r} has {text}"))
    elif after.group.state == NOT_READY:
        findings.append(_without_topics(name))
    elif after.group.state in REBALANCING:
        findings.append(_rebalancing(before.group, after.group, seconds))
    else:
        findings += _about_comings(before.group, after.group, seconds)
        findings += _about_progress(before, after, lags, offsets, seconds)
        findings += _without_offsets(before, after, offsets, seconds)
        if not after.is_of_streams:  # a member without active tasks may have standby tasks
            findings += _about_idle_members(after.group)
    if findings:
        return findings
    behind = counted(sum(lags.values()), "offset")
    members = counted(len(after.group.members), "member")
    moved = sum(after.committed.values()) - sum(before.committed.get(p, 0) for p in after.committed)
    commits = f", and committed {counted(moved, 'offset')} in {seconds:g} s" if lags and moved > 0 else ""
    return [
        ok("groups", name, f"Group {name!r} is {after.group.state}: {members}, {behind} behind{commits}.")
    ]


def _without_members(
    before: Group, group: Group, lags: Mapping[PartitionKey, int], seconds: float
) -> Finding:
    name, changed = group.group, _changed(before, group)
    waits = f"{counted(sum(lags.values()), 'offset')} wait in {counted(len(lags), 'partition')}"
    if changed:
        text = f"Group {name!r} has no members now, and had some {seconds:g} s ago: {waits}.{changed}"
        return problem("groups", name, text, f"{COMES_AND_GOES} {_explained(name)}")
    return warning(
        "groups",
        name,
        f"Group {name!r} has no members: {waits}, and no consumer reads them.",
        "Start its consumers. If they run, they fail soon after they have joined, use another group.id, "
        f"reach another cluster, or cannot join: their log says which. {_explained(name)}\n"
        "If the group is no longer used:\n"
        f"  pykafka-broker groups delete {argument(name)}",
    )


def _without_topics(name: str) -> Finding:
    return problem(
        "groups",
        name,
        f"Group {name!r} is NotReady: the topics of its Kafka Streams application are missing, or have other "
        "numbers of partitions than its topology needs, and no record is read.",
        "The log of the application names them. Create its source topics, and let its members create the "
        "internal ones (with ACLs they need CREATE).",
    )


def _rebalancing(before: Group, group: Group, seconds: float) -> Finding:
    meaning, remedy = MEANINGS[group.state]
    members = counted(len(group.members), "member")
    changed = _changed(before, group)
    is_lasting = before.state == group.state
    looks = f"was {group.state} at two looks, {seconds:g} s apart" if is_lasting else f"is {group.state} now"
    return (problem if is_lasting or changed else warning)(
        "groups",
        group.group,
        f"Group {group.group!r} {looks}: {meaning}. It has {members} ({clients(group.members)}).{changed}",
        f"{remedy} {_explained(group.group)}".lstrip(),
    )


def _about_comings(before: Group, group: Group, seconds: float) -> list[Finding]:
    """Members that went while the group was looked at, and others that came."""
    changed = _changed(before, group)
    if not changed:
        return []
    text = f"Group {group.group!r} is {group.state}, and rebalanced in these {seconds:g} s.{changed}"
    return [warning("groups", group.group, text, f"{COMES_AND_GOES} {_explained(group.group)}")]


def _changed(before: Group, after: Group) -> str:
    """Which members went between two looks, if any, and which came."""
    were, are = ({member.consumer_id: member for member in one.members} for one in (before, after))
    gone = [were[each] for each in were if each not in are]
    come = [are[each] for each in are if each not in were]
    joined = f"; {clients(come)} joined" if come else ""
    return f" Meanwhile {clients(gone)} left{joined}: clients come and go." if gone else ""


def _explained(name: str) -> str:
    """Where Kafka's APIs tell no more."""
    where = "On the machine of a broker that was started with --metrics, this says more"
    return f"{where}:\n  pykafka-broker explain group {argument(name)}"


def _about_places(
    name: str,
    committed: Mapping[PartitionKey, int],
    offsets: Mapping[PartitionKey, Offsets],
    led: Collection[PartitionKey],
) -> list[Finding]:
    """Committed offsets that are before the log start or past the log end."""
    findings = []
    for partition, offset in sorted(committed.items()):
        topic, index = partition
        where = f"{topic}-{index}"
        reset = (
            "Its consumers go where auto.offset.reset says, and fail if it is none. To choose yourself, stop "
            "them and\n"
            f"  pykafka-broker groups reset-offsets {argument(name)} --topic {topic}:{index} --to-earliest "
            "--execute"
        )
        if partition not in offsets and partition in led:
            continue  # its leader does not tell, or it is one too many to ask
        if partition not in offsets:
            findings.append(
                warning(
                    "groups",
                    name,
                    f"Group {name!r} has a committed offset of {where}, which does not exist or has no "
                    "leader.",
                    "If the topic was deleted for good, so can the offset be: it expires by itself after "
                    "offsets.retention.minutes.",
                )
            )
        elif offset < (start := offsets[partition].log_start):
            findings.append(
                problem(
                    "groups",
                    name,
                    f"Group {name!r} has committed offset {offset:,} of {where}, whose first record is now "
                    f"{start:,}: {counted(start - offset, 'offset')} were removed before the group read "
                    "them.",
                    reset,
                )
            )
        elif offset > (end := offsets[partition].end):
            findings.append(
                problem(
                    "groups",
                    name,
                    f"Group {name!r} has committed offset {offset:,} of {where}, which ends at {end:,}: the "
                    "topic was created anew, or the offset comes from another cluster.",
                    reset,
                )
            )
    return findings


def _about_progress(
    before: Look,
    after: Look,
    lags: Mapping[PartitionKey, int],
    offsets: Mapping[PartitionKey, Offsets],
    seconds: float,
) -> list[Finding]:
    """Partitions with records whose committed offset stays where it is."""
    stuck = [p for p in sorted(lags) if before.committed.get(p) == after.committed[p] >= offsets[p].log_start]
    held_up = [p for p in stuck if after.committed[p] >= offsets[p].last_stable]
    owners = {p: member for member in after.group.members for p in member.assignment}
    without_owner = [p for p in stuck if p not in owners and p not in held_up]
    not_committing = [p for p in stuck if p in owners and p not in held_up]
    moved = {owners[p].consumer_id for p in owners if before.committed.get(p) != after.committed.get(p)}
    name = after.group.group
    findings = []
    if held_up:
        findings.append(
            warning(
                "groups",
                name,
                f"Group {name!r} has read all committed records of {shown(held_up)}; what follows belongs "
                "to a transaction that is still open.",
                "See what is said of the transaction under the topic.",
            )
        )
    if without_owner:
        findings.append(
            warning(
                "groups",
                name,
                f"Group {name!r} has {counted(len(after.group.members), 'member')}, of which none reads "
                f"{shown(without_owner)}.",
                "Its members do not subscribe to that topic any more, or assign their partitions themselves.",
            )
        )
    if not_committing:
        message = (
            f"Group {name!r} has not moved in {shown(not_committing)} for {seconds:g} s, though "
            f"{counted(sum(lags[p] for p in not_committing), 'offset')} wait there "
            f"({clients(owners[p] for p in not_committing)})."
        )
        if after.is_of_streams and seconds < STREAMS_COMMIT_S:
            remedy = (
                f"An application commits every commit.interval.ms, {STREAMS_COMMIT_S} s by default. Look for "
                f"longer:\n  pykafka-broker doctor --group {argument(name)} --watch {STREAMS_COMMIT_S + 5}"
            )
            findings.append(warning("groups", name, message, remedy))
        else:
            remedy = (
                "The member reads without committing (enable.auto.commit=false and no commit; the default "
                "interval is 5 s), is stopped, is busy with a record, or fails at the same record again and "
                f"again: its log says which. {_explained(name)}"
            )
            is_slow = all(owners[p].consumer_id in moved for p in not_committing)
            if is_slow:
                message += " In other partitions these members have moved meanwhile."
            findings.append((warning if is_slow else problem)("groups", name, message, remedy))
    return findings


def _without_offsets(
    before: Look, after: Look, offsets: Mapping[PartitionKey, Offsets], seconds: float
) -> list[Finding]:
    """Partitions with records that a member is assigned, and in which it has never committed an offset."""
    owners = {(p.topic, p.partition): member for member in after.group.members for p in member.assignment}
    silent = [
        p
        for p in sorted(owners)
        if p not in after.committed
        and p in places(before)
        and p in offsets
        and offsets[p].end > offsets[p].log_start
    ]
    if not silent:
        return []
    records = sum(offsets[p].end - offsets[p].log_start for p in silent)
    name = after.group.group
    return [
        warning(
            "groups",
            name,
            f"Group {name!r} has never committed an offset in {shown(silent)}, nor in these {seconds:g} s, "
            "though "
            f"there are {counted(records, 'offset')} ({clients(owners[p] for p in silent)}). How far it "
            "has read "
            "cannot be told, and after a restart it begins where auto.offset.reset says.",
            "If the member should commit, let it (enable.auto.commit=true, or a commit of its own). If it "
            "does not "
            "read either, its log says why. Without a commit, auto.offset.reset=latest leaves out what was "
            "there "
            "before.",
        )
    ]


def _about_idle_members(group: Group) -> list[Finding]:
    idle = [member for member in group.members if not member.assignment]
    if not idle or len(idle) == len(group.members):
        return []
    partitions = len({p for member in group.members for p in member.assignment})
    return [
        warning(
            "groups",
            group.group,
            f"Group {group.group!r} has {counted(len(group.members), 'member')} for "
            f"{counted(partitions, 'partition')}: {counted(len(idle), 'member has', 'members have')} "
            "nothing to read.",
            "A partition is read by one member at a time. Give the topic more partitions\n"
            "  pykafka-broker topics alter TOPIC --partitions N\n"
            "or run fewer members.",
        )
    ]
