"""What a coordinator knows of a group now: for whom it waits, who has fallen silent, where no offset is
committed, and who comes and goes.

Pure, and nothing is kept for it. A heartbeat leaves only the timer of its session behind, so that the age of
the last one is the session time-out without what is left of it; a commit leaves its time beside the offset;
joins are in the history. A commit of a classic member counts as a heartbeat.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.consumer_protocol import read_assignment
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.coordinator.groups.decision_texts import (
    JOINED,
    REBALANCED,
    REPLACED,
    SILENT,
    THE_GROUP,
    TOO_SLOW,
    asked,
    heartbeats_of,
    who,
)
from pykafka_broker.machine.history import Entry
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import MS_PER_MINUTE, argument, counted, duration, listed

#: A member is silent after this many intervals without a heartbeat, and late if it has not done what a
#: rebalance asks of it: one heartbeat has told it, and another interval has passed.
INTERVALS = 2
#: Two intervals of commits: auto.commit.interval.ms, and commit.interval.ms of Kafka Streams, by default.
COMMITTED_WITHIN_MS, COMMITTED_BY_STREAMS_WITHIN_MS = 10_000, 60_000
#: How far back rebalances are counted, from how many on they are told, and of how many clients.
COUNTED_MS, LEAST_REBALANCES, MOST_CLIENTS = 10 * MS_PER_MINUTE, 3, 3
#: How often a client has gone to be named, and members after the first of `LEAST_JOINS` joins without a
#: commit, where they may fail at a record. Where nothing was ever committed, one client has to have gone
#: `LEAST_JOINS` times. The most partitions of which this is told.
LEAST_DEPARTURES, LEAST_JOINS, MOST_PARTITIONS = 2, 3, 3

COMES_AND_GOES = (
    "Each time the partitions are assigned anew. The logs of clients that leave or time out may say why: "
    "they are closed, fail, do not call poll() within max.poll.interval.ms, or are stopped or cut off."
)
NOT_MOVING = (
    "If this lasts, it does not call poll() (it is blocked, or slow with its records), does not commit, or "
    "fails at a record: its log says which. `pykafka-broker explain request CLIENT` says whether a quota "
    "throttles it."
)
WITHOUT_HOLDER = (
    "Its members do not subscribe to that topic, assign their partitions themselves, or are about to get it."
)
NOTHING_COMMITTED = (
    "How far it has read is not known: with auto.offset.reset=latest it waits for records that are written "
    "from now on. If it has read some, it does not commit, or fails at the first: its log says which."
)

Told = tuple[str, str]
SpanOf = Callable[[str, int], tuple[int, int] | None]

_SESSIONS: dict[type, str] = {
    ClassicGroup: "session",
    ConsumerGroup: "consumer-session",
    ShareGroup: "share-session",
    StreamsGroup: "streams-session",
}
#: The timers that give one member time for its part in a rebalance.
_OF_MEMBERS = ("consumer-revocation", "consumer-join", "consumer-sync", "streams-revocation")


class Moment(NamedTuple):
    """The groups of a shard, one of which is looked at, at a time. `left_ms` tells how long until a timer is
    due; None if it does not run.
    """

    groups: Groups
    group_id: str
    config: GroupCoordinatorConfig
    now_ms: int
    left_ms: Callable[[Hashable], int | None]

    @property
    def group(self) -> Group:
        group = self.groups.groups.get(self.group_id)
        assert group is not None, self.group_id
        return group


class _Wait(NamedTuple):
    """What a member is to do, since when, and how long until its group goes on without it."""

    to_do: str
    ms: int
    left_ms: int | None


class _End(NamedTuple):
    """Why the wait for a member ends, and how long until then; None if that is not known."""

    left_ms: int | None
    why: str


class _Session(NamedTuple):
    """How long a member has sent no heartbeat, from when on it is silent, and how long until it is removed;
    None if that is not known.
    """

    silent_ms: int
    patience_ms: int
    left_ms: int | None
    timeout_ms: int

    @property
    def is_silent(self) -> bool:
        return self.silent_ms > self.patience_ms


# ---- members ----


def members(at: Moment) -> Iterator[Told]:
    """The members for which the group waits, and those that have fallen silent, each with what to do."""
    group = at.group
    busy: set[str] = set()
    if isinstance(group, ClassicGroup):
        # A member whose request is parked sends no heartbeats.
        busy = {*group.joining, *group.syncing}
        left_ms = at.left_ms(("join", group.group_id)) if group.is_initial_rebalance else None
        if left_ms is not None:
            yield (
                f"The group was empty: it waits {duration(left_ms)} more for further members "
                "(group.initial.rebalance.delay.ms).",
                "",
            )
        if group.pending_members:
            clients = counted(len(group.pending_members), "client")
            yield f"{clients} got a member id to join with, and did not join with it yet.", ""
    for member in group.members.values():
        if member.member_id not in busy:
            yield from _member(at, group, member, _wait(at, group, member))


def _member(at: Moment, group: Group, member: Any, wait: _Wait | None) -> Iterator[Told]:
    session = _session(at, group, member)
    silence = f"has sent no heartbeat for {duration(session.silent_ms)}"
    ends = _End(session.left_ms, f"its session ends (session.timeout.ms={session.timeout_ms})")
    if wait is None:
        if session.is_silent:
            yield f"{who(member)} {silence}.{_first('Without one it is removed', ends)}", SILENT
        return
    name = who(member, is_first=False)
    waits = f"The group waits for {name} to {wait.to_do}, {duration(wait.ms)} so far"
    if not session.is_silent and not _is_late(session, wait):
        yield f"{waits}: a member does so with its next heartbeat or poll().", ""
        return
    rebalance = _End(wait.left_ms, "its rebalance time-out (max.poll.interval.ms) is over")
    goes_on = "The group goes on without it"
    if session.is_silent:
        yield f"{waits}. It {silence}.{_first(goes_on, ends, rebalance)}", SILENT
    else:
        last = f"It sent a heartbeat {duration(session.silent_ms)} ago"
        runs = f"{last}: its process runs, but does not call poll(), or "
        yield f"{waits}. {runs}does not return from it.{_first(goes_on, rebalance)}", TOO_SLOW


def _session(at: Moment, group: Group, member: Any) -> _Session:
    timeout_ms, interval_ms = heartbeats_of(member, group, at.config)
    left_ms = at.left_ms((_SESSIONS[type(group)], group.group_id, member.member_id))
    silent_ms = 0 if left_ms is None else max(0, timeout_ms - left_ms)
    return _Session(silent_ms, INTERVALS * interval_ms, left_ms, timeout_ms)


def _is_late(session: _Session, wait: _Wait | None) -> bool:
    """Whether a member that sends heartbeats should have done what the group waits for."""
    return wait is not None and session.left_ms is not None and wait.ms > session.patience_ms


def _first(what: str, *ends: _End) -> str:
    """When something is so: at the first of these ends whose time is known."""
    known = [(end.left_ms, end.why) for end in ends if end.left_ms is not None]
    return f" {what} in {duration(min(known)[0])}, when {min(known)[1]}." if known else ""


def _wait(at: Moment, group: Group, member: Any) -> _Wait | None:
    if not isinstance(group, ClassicGroup):
        for timer in _OF_MEMBERS:
            left_ms = at.left_ms((timer, group.group_id, member.member_id))
            if left_ms is not None:
                return _Wait(asked(timer), max(0, member.rebalance_timeout_ms - left_ms), left_ms)
        return None
    for_ms = max(0, at.now_ms - group.phase_began_ms)
    if group.phase is Phase.PREPARING_REBALANCE:
        # The time-out of a rebalance removes no static member, but ends the wait for it.
        return _Wait(asked("join"), for_ms, at.left_ms(("join", group.group_id)))
    if group.phase is Phase.COMPLETING_REBALANCE and member.member_id == group.leader_id:
        left_ms = at.left_ms(("sync", group.group_id))
        return _Wait("assign the partitions, as their leader", for_ms, left_ms)
    return None


# ---- partitions ----


def behind(at: Moment, span_of: SpanOf, history: Sequence[Entry]) -> Iterator[Told]:
    """Partitions with records whose offset has not been committed for some time: by the members that hold
    them, or, where members have joined and gone again and again meanwhile, with the next record.

    Args:
        at: The group.
        span_of: The log start offset and the high watermark of a partition; None if they are not known here.
        history: What has been decided on the group.
    """
    turnover = _Turnover.of(history, at.now_ms)
    offsets: Mapping[PartitionKey, CommittedOffset] = at.groups.offsets.get(at.group_id) or {}
    holders = _holders(at.group, at.groups.topics)
    # Members commit nothing while they wait for a rebalance, and begin with what they got by it afterwards.
    is_at_rest = not isinstance(at.group, ClassicGroup) or at.group.phase in (Phase.STABLE, Phase.EMPTY)
    held_ms = max(0, at.now_ms - _assigned_ms(at.group))
    again: list[_Place] = []
    held: dict[Told, list[str]] = {}
    for topic, number in sorted({*offsets, *holders}):
        span = span_of(topic, number)
        if span is None:
            continue
        name, committed = f"{topic}-{number}", offsets.get((topic, number))
        offset, since_ms = span[0], _assigned_ms(at.group)
        if committed is not None:
            offset, since_ms = committed.offset, committed.commit_timestamp_ms
        if offset < span[0]:
            yield (
                f"The committed offset {offset} of {name} is below its log start offset {span[0]}: "
                f"{counted(span[0] - offset, 'offset')} were removed before the group read them.",
                f"`pykafka-broker doctor --group {argument(at.group_id)}` says how to choose the next one.",
            )
            offset = span[0]
        if span[1] <= offset:
            continue
        lag = counted(span[1] - offset, "record")
        for_ms = max(0, at.now_ms - since_ms)
        holder, is_committed = holders.get((topic, number)), committed is not None
        holds_on = holder is not None and _holds_on(at, holder)
        told_again = "" if holds_on else turnover.told(name, lag, None if committed is None else since_ms, at)
        if told_again:
            shows = (
                f"pykafka-broker consume {topic} --partition {number} --from {offset} --max-messages 100 "
                "--print offset,key,value"
            )
            again.append(_Place(-for_ms, name, offset, told_again, shows))
        elif is_at_rest and min(for_ms, held_ms) > _committed_within_ms(at.group):
            behind_by = f"{lag} behind" if is_committed else lag
            last = f"last commit {duration(for_ms)} ago"
            if not is_committed or (holder is not None and held_ms < for_ms):
                last = f"no commit in the {duration(held_ms)} since it was assigned"
            told = _holding(at, holder, is_committed=is_committed, holders_are_known=bool(holders))
            held.setdefault(told, []).append(f"{name} ({behind_by}, {last})")
    if again:
        yield from _failing(sorted(again)[:MOST_PARTITIONS])
    for (holds, advice), places in held.items():
        yield f"{holds} {listed(places)}.", advice


def _holds_on(at: Moment, holder: Any) -> bool:
    """Whether the group waits for the holder of a partition, which has not gone with those that went."""
    return _is_late(_session(at, at.group, holder), _wait(at, at.group, holder))


def _holding(at: Moment, holder: Any, *, is_committed: bool, holders_are_known: bool) -> Told:
    """Who holds a partition in which nothing is committed now, and what to do."""
    if not at.group.members:
        return "The group has", ""
    if holder is None and holders_are_known:
        return "No member holds", WITHOUT_HOLDER
    if holder is not None and (_session(at, at.group, holder).is_silent or _holds_on(at, holder)):
        return f"{who(holder)} holds", ""  # what to do is said with its silence, or its delay
    holds = "The group has" if holder is None else f"{who(holder)} holds"
    return holds, NOT_MOVING if is_committed else NOTHING_COMMITTED


class _Place(NamedTuple):
    """A partition in which nothing was committed while members joined and went, and what is told of it."""

    #: Minus the age of the commit: the oldest one is the first.
    minus_age_ms: int
    name: str
    offset: int
    text: str
    shows: str


def _failing(places: Sequence[_Place]) -> Iterator[Told]:
    """Where members may fail at a record: in one of these partitions."""
    *others, last = places
    for place in others:
        yield place.text, ""
    where = "in one of these partitions, at its offset" if others else f"at {last.name} offset {last.offset}"
    commands = ", ".join(f"`{place.shows}`" for place in places)
    yield last.text, f"If each fails at the same record, it is {where} or after it: {commands}"


class _Turnover(NamedTuple):
    """When members have joined and gone, each in order. A member that is replaced does both."""

    joins_ms: list[int]
    departures_ms: list[int]
    #: The client that has gone most often lately, with that number and the number of its joins.
    restless: tuple[str, int, int]

    @classmethod
    def of(cls, history: Sequence[Entry], now_ms: int) -> _Turnover:
        deeds = [(entry.last_ms, *deed) for entry in history for deed in entry.deeds if deed[0] != THE_GROUP]
        lately = [deed for deed in deeds if now_ms - deed[0] <= COUNTED_MS]
        joined = Counter(client for _, client, did in lately if did in (JOINED, REPLACED))
        gone = Counter(client for _, client, did in lately if did != JOINED)
        client, departures = next(iter(gone.most_common(1)), ("", 0))
        return cls(
            sorted(ms for ms, _, did in deeds if did in (JOINED, REPLACED)),
            sorted(ms for ms, _, did in deeds if did != JOINED),
            (client, departures, joined[client]),
        )

    def told(self, name: str, lag: str, committed_ms: int | None, at: Moment) -> str:
        """What members may have failed at a record of a partition since its last commit; "" if none may."""
        if committed_ms is None:
            client, departures, joins = self.restless
            if min(joins, departures) < LEAST_JOINS:
                return ""
            return (
                f"{name} has {lag} and no commit. {client} joined {joins} times and went {departures} times."
            )
        joins, departures = self._since(committed_ms)
        if joins < LEAST_JOINS or departures < LEAST_DEPARTURES:
            return ""
        return (
            f"{name} is {lag} behind. Since its last commit, {duration(max(0, at.now_ms - committed_ms))} "
            f"ago, members joined {joins} times and went {departures} times."
        )

    def _since(self, ms: int) -> tuple[int, int]:
        """How many have joined after this time, and how many have gone after the first of these."""
        joins_ms = self.joins_ms[bisect_right(self.joins_ms, ms) :]
        if not joins_ms:
            return 0, 0
        return len(joins_ms), len(self.departures_ms) - bisect_left(self.departures_ms, joins_ms[0])


def _committed_within_ms(group: Group) -> int:
    return COMMITTED_BY_STREAMS_WITHIN_MS if isinstance(group, StreamsGroup) else COMMITTED_WITHIN_MS


def _assigned_ms(group: Group) -> int:
    """When the partitions were assigned that `_holders` tells of."""
    return group.phase_began_ms if isinstance(group, ClassicGroup) else group.assignment_timestamp_ms


def _holders(group: Group, topics: TopicDirectory) -> dict[PartitionKey, Any]:
    """The member that has been assigned each partition, where the coordinator can read it."""
    found: dict[PartitionKey, Any] = {}
    if isinstance(group, ClassicGroup):
        for member in group.members.values():
            try:
                assigned = read_assignment(member.assignment).assigned_partitions
            except ProtocolError:
                continue
            found.update({(one.topic, number): member for one in assigned for number in one.partitions})
    elif isinstance(group, ConsumerGroup):
        for each in group.members.values():
            for topic_id, numbers in each.assigned.items():
                topic = topics.topic_by_id(topic_id)
                if topic is not None:
                    found.update({(topic.name, number): each for number in numbers})
    return found


# ---- the history ----


def comings(history: Sequence[Entry], now_ms: int) -> Iterator[Told]:
    """How often a group has rebalanced lately, and which clients have joined or left most often.

    Args:
        history: What has been decided on the group, the oldest first.
        now_ms: Unix time.
    """
    recent = [entry for entry in history if now_ms - entry.last_ms <= COUNTED_MS]
    counts = Counter[tuple[str, str]]()
    begun_ms = []
    for entry in recent:
        for deed in entry.deeds:
            counts[deed] += entry.times
        if (THE_GROUP, REBALANCED) in entry.deeds:
            begun_ms.append(entry.last_ms)
    times = counts.pop((THE_GROUP, REBALANCED), 0)
    if times < LEAST_REBALANCES:
        return
    by_client: dict[str, dict[str, int]] = {}
    for (client, did), number in counts.items():
        by_client.setdefault(client, {})[did] = number
    most = sorted(by_client, key=lambda client: -sum(by_client[client].values()))[:MOST_CLIENTS]
    gone = {client: sum(n for did, n in by_client[client].items() if did != JOINED) for client in most}
    often = [client for client in most if gone[client] >= LEAST_DEPARTURES]
    said = [
        f"{client} {' and '.join(f'{did} {_times(number)}' for did, number in by_client[client].items())}"
        for client in often
    ]
    first_ms, last_ms = max(0, now_ms - begun_ms[0]), max(0, now_ms - begun_ms[-1])
    text = f"The group rebalanced {_times(times)}, the first time {duration(first_ms)} and the last time "
    yield (
        f"{text}{duration(last_ms)} ago{': ' if said else ''}{'; '.join(said)}.",
        COMES_AND_GOES if often else "",
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
