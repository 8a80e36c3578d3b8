"""Why a group rebalances: what an event has done to its members, as decisions for the history of the node
and its log.

Pure: everything is read from the groups before and after the event, and from the event itself, which says why
(a timer has the name of what has run out). An event that changes no group, such as a heartbeat without news,
makes no decision, and a commit of offsets neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    ClassicGroup,
    Phase,
)
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted, cut, duration

SILENT = (
    "Its process has ended or was paused, or it does not reach this broker. Look at its log and its pauses; "
    "raise session.timeout.ms only if pauses of that length are normal."
)
TOO_SLOW = (
    "It is busy with its records, or in a rebalance listener. Let it take fewer records at once "
    "(max.poll.records), or raise max.poll.interval.ms, which is its rebalance time-out."
)
SILENT_OR_SLOW = "It has stopped, or did not call poll() in that time: its log says which."
LEFT = (
    "A consumer leaves when it is closed, and also when it does not call poll() within max.poll.interval.ms: "
    "its own log says which."
)
TAKEN_OVER = (
    "If the former member still runs, two processes have the same group.instance.id: give each its own."
)

#: The timers that give a member time to take part in a rebalance; all others watch its heartbeats.
_OF_REBALANCES = frozenset(
    {"join", "sync", "consumer-join", "consumer-sync", "consumer-revocation", "streams-revocation"}
)
_NO_MEMBERS: Mapping[str, Any] = {}

#: The deeds that are counted (`present.py`); the group itself has no name among the clients.
THE_GROUP, REBALANCED = "", "rebalanced"
JOINED, REPLACED = "joined", "was replaced"
#: How often a classic member sends heartbeats by default (heartbeat.interval.ms): it tells no broker.
CLASSIC_HEARTBEAT_INTERVAL_MS = 3_000


class _Change(NamedTuple):
    """A sentence, what to do about it, and who did what in it, if that is counted."""

    text: str
    remedy: str = ""
    deed: tuple[str, str] | None = None


def decisions(
    before: Groups, event: Event, after: Groups, config: GroupCoordinatorConfig
) -> Iterator[Decision]:
    """What `event` has decided on the members of its group; nothing if it has left them as they were."""
    group_id = group_of(event)
    if group_id is None:
        return
    was, now = before.groups.get(group_id), after.groups.get(group_id)
    if was is now:
        return
    changes = [*_membership(was, event, now, config)]
    changes += _progress(was, event, now, has_reason=bool(changes))
    if changes:
        remedies = dict.fromkeys(change.remedy for change in changes if change.remedy)
        yield Decision(
            Kind.GROUP,
            (group_id,),
            " ".join(change.text for change in changes),
            " ".join(remedies),
            deeds=tuple(change.deed for change in changes if change.deed is not None),
        )


def group_of(event: Event) -> str | None:
    """The group that an event is about; None if it is about none or about several."""
    match event:
        case events.TimerFired(key=(_, str(group_id), *_)):
            return group_id
        case _:
            named = getattr(event, "group_id", None)
            return named if isinstance(named, str) else None


# ---- members ----


def _membership(
    was: Group | None, event: Event, now: Group | None, config: GroupCoordinatorConfig
) -> Iterator[_Change]:
    before, after = _members(was), _members(now)
    if before is after:
        return
    # One version of a table is read after the other, because changing between them costs time.
    names = [*_named(was, event, now)]
    there = {name: before.get(name) for name in names}
    here = {name: after.get(name) for name in names}
    gone = [name for name in names if there[name] is not None and here[name] is None]
    come = [name for name in names if there[name] is None and here[name] is not None]
    for name in gone:
        yield _gone(there[name], was, event, config, successor=here[come[0]] if come else None)
    if not gone:
        for name in come:
            yield _Change(f"{who(here[name])} joined.", deed=(_client(here[name]), JOINED))


def _members(group: Group | None) -> Mapping[str, Any]:
    return _NO_MEMBERS if group is None else group.members


def _named(was: Group | None, event: Event, now: Group | None) -> Iterable[str]:
    """The ids of the members that an event may have added or removed."""
    before, after = _members(was), _members(now)
    if all(group is None or isinstance(group, ClassicGroup) for group in (was, now)):
        return dict.fromkeys([*(before.keys() - after.keys()), *(after.keys() - before.keys())])
    static: Mapping[str, str] = getattr(was, "static_members", {})
    match event:
        case events.TimerFired(key=(_, _, str(member_id), *_)):
            return (member_id,)
        case events.LeaveGroup():
            each = (
                leaving.member_id or static.get(leaving.group_instance_id or "") for leaving in event.members
            )
            return dict.fromkeys(name for name in each if name)
        case events.JoinGroup():
            made = (f"{start}-{event.uuid}" for start in (event.client_id, event.group_instance_id))
            former = static.get(event.group_instance_id or "")
            return dict.fromkeys(name for name in (former, event.member_id, *made) if name)
        case _:
            former = static.get(getattr(event, "instance_id", None) or "")
            own = (getattr(event, field, "") for field in ("member_id", "uuid"))
            return dict.fromkeys(name for name in (former, *own) if name)


def _gone(
    member: Any, group: Group | None, event: Event, config: GroupCoordinatorConfig, successor: Any
) -> _Change:
    name, client = who(member), _client(member)
    if successor is not None:
        instance_id = _instance_of(successor)
        return _Change(
            f"{name} was replaced by {who(successor, is_first=False)}, "
            f"which joined with the same group.instance.id {instance_id!r}.",
            TAKEN_OVER,
            (client, REPLACED),
        )
    removed = (client, "was removed")
    match event:
        case events.TimerFired(key=(str(timer), *_)) if timer in _OF_REBALANCES:
            assert group is not None
            timeout_ms = getattr(member, "rebalance_timeout_ms", 0)
            if isinstance(group, ClassicGroup):
                timeout_ms = group.rebalance_timeout_ms
            # Its session would have ended before, if no heartbeat had come since it was asked.
            has_run = heartbeats_of(member, group, config).session_timeout_ms < timeout_ms
            return _Change(
                f"{name} was removed: it did not {asked(timer)} within the rebalance time-out of "
                f"{duration(timeout_ms)}{', though it sent heartbeats' if has_run else ''}.",
                TOO_SLOW if has_run else SILENT_OR_SLOW,
                removed,
            )
        case events.TimerFired():
            if getattr(member, "is_new", False):
                return _Change(
                    f"{name} was removed: its first rebalance did not end within "
                    f"{duration(NEW_MEMBER_JOIN_TIMEOUT_MS)}.",
                    SILENT,
                    removed,
                )
            assert group is not None
            timeout_ms = heartbeats_of(member, group, config).session_timeout_ms
            return _Change(
                f"{name} timed out: it had sent no heartbeat for {duration(timeout_ms)} "
                f"(session.timeout.ms={timeout_ms}).",
                SILENT,
                (client, "timed out"),
            )
        case events.LeaveGroup(members=members):
            leaving = next((one for one in members if one.member_id == member.member_id), None)
            if leaving is None:
                return _Change(f"{name} was removed by an administrator.", deed=removed)
            why = f": {leaving.reason.rstrip('.')}" if leaving.reason else ""
            return _Change(f"{name} left{why}.", LEFT, (client, "left"))
        case events.JoinGroup():
            return _Change(f"{name} was removed: the group is full (group.max.size).", deed=removed)
    return _Change(f"{name} left.", LEFT, (client, "left"))


def asked(timer: str) -> str:
    """What a timer of rebalances gives a member time to do."""
    if timer.endswith("revocation"):
        return "give up partitions"
    return "ask for its assignment" if timer.endswith("sync") else "join again"


class Heartbeats(NamedTuple):
    """When a member without a heartbeat is removed, and how often it is to send one."""

    session_timeout_ms: int
    interval_ms: int


def heartbeats_of(member: Any, group: Group, config: GroupCoordinatorConfig) -> Heartbeats:
    """The heartbeats of a member of a group of any kind."""
    classic = member if isinstance(group, ClassicGroup) else getattr(member, "classic", None)
    if classic is not None:
        return Heartbeats(classic.session_timeout_ms, CLASSIC_HEARTBEAT_INTERVAL_MS)
    if isinstance(group, ConsumerGroup):
        of_consumers = config.consumer_settings(group.group_id)
        return Heartbeats(of_consumers.session_timeout_ms, of_consumers.heartbeat_interval_ms)
    if isinstance(group, ShareGroup):
        of_share = config.share_settings(group.group_id)
        return Heartbeats(of_share.session_timeout_ms, of_share.heartbeat_interval_ms)
    of_streams = config.streams_settings(group.group_id)
    return Heartbeats(of_streams.session_timeout_ms, of_streams.heartbeat_interval_ms)


def who(member: Any, *, is_first: bool = True) -> str:
    """A member in a sentence, at its beginning or not; with its client id, where its own id does not begin
    with it.
    """
    host, client_id = member.client_host.lstrip("/"), member.client_id
    client = f"{cut(client_id)} at " if client_id and not member.member_id.startswith(client_id) else ""
    return f"{'Member' if is_first else 'member'} {member.member_id}{f' ({client}{host})' if host else ''}"


def _client(member: Any) -> str:
    """The client of a member, which keeps its name when it joins as another member."""
    return cut(f"{member.client_id or '<unknown>'} at {member.client_host.lstrip('/')}")


def _instance_of(member: Any) -> str | None:
    fields = ("group_instance_id", "instance_id")
    instance_id: str | None = next(filter(None, (getattr(member, field, None) for field in fields)), None)
    return instance_id


# ---- the group ----


def _progress(was: Group | None, event: Event, now: Group | None, *, has_reason: bool) -> Iterator[_Change]:
    if now is None:
        return
    if was is not None and type(was) is not type(now) and was.members:
        yield _Change(f"The group is a {kind_of(now).name} group from now on.")
    if isinstance(now, ClassicGroup):
        phase = was.phase if isinstance(was, ClassicGroup) else Phase.EMPTY
        if phase is not now.phase:
            yield from _phase(was, event, now, has_reason=has_reason)
    elif not isinstance(was, ClassicGroup) and (was is None or was.group_epoch != now.group_epoch):
        why = "" if has_reason else ", because its topics or what its members subscribe to have changed"
        count = counted(len(now.members), "member")
        left = f"new assignments go to {count}" if now.members else "it is empty"
        text = f"The group is in epoch {now.group_epoch}{why}: {left}."
        yield _Change(text, deed=(THE_GROUP, REBALANCED))


def _phase(was: Group | None, event: Event, now: ClassicGroup, *, has_reason: bool) -> Iterator[_Change]:
    count = counted(len(now.members), "member")
    match now.phase:
        case Phase.PREPARING_REBALANCE:
            if not has_reason:
                yield _Change(_reason(was, event, now))
            text = "It is the first member of an empty group."
            if isinstance(was, ClassicGroup) and was.phase is not Phase.EMPTY:
                text = f"The group rebalances: generation {now.generation} ends, and {count} must join again."
            yield _Change(text, deed=(THE_GROUP, REBALANCED))
        case Phase.COMPLETING_REBALANCE:
            yield _Change(
                f"Generation {now.generation} has {count}; member {now.leader_id} assigns the partitions."
            )
        case Phase.STABLE:
            yield _Change(f"Generation {now.generation} has its assignment.")
        case Phase.EMPTY | Phase.DEAD:
            yield _Change("The group is empty.")


def _reason(was: Group | None, event: Event, now: ClassicGroup) -> str:
    """Why a group rebalances whose members have stayed the same."""
    match event:
        case events.JoinGroup():
            before, after = _members(was).get(event.member_id), now.members.get(event.member_id)
            if after is None:
                return "A member was rejected."
            name = who(after)
            if before is not None and before.protocols == after.protocols:
                return f"{name}, the leader, asked for a new assignment, such as for new partitions."
            return f"{name} changed what it subscribes to."
        case events.AssignmentRefused():
            return f"The assignment could not be stored ({event.error.name})."
        case events.SyncGroup():
            return f"Member {event.member_id} sent an assignment that could not be stored."
    return "The members have to join again."
