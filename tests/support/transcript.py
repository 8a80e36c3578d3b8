"""Transcripts of group conversations: what is said stands at the margin, what follows from it is indented.

    join a                       a joins group g (`as=x` to join under another client's member id)
    sync a a=0,1 b=2             a asks for its assignment, and brings those of all if it leads
    heartbeat a | leave a b | leave instance=x | commit a t-0=5 | commit - t-0=5 | fetch | describe | reload
    at 3000                      time passes; timers fire

Options are `key=value`. A name stands for a client; its member id is shown as that name, and later ids of the
same client as `name'`, `name''`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Protocol
from pykafka_broker.coordinator.groups.core.events import FetchResult, JoinResult, LeaveResult, SyncResult
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import AnyRecord, Record
from pykafka_broker.machine.step import CancelTimer, Effect, Reply, SetTimer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records.group import GroupMetadataValue
from tests.support.groups import START_MS, GroupWorld, subscription
from tests.support.members import Member


def replay_transcript(text: str, tell: Callable[[str], list[str]]) -> str:
    """The transcript with the lines that follow from its commands written anew, as `tell` has them."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {told}" for told in tell(line)]
    return "\n".join(lines) + "\n"


class Teller:
    """Runs commands against a `GroupWorld` and tells what happened."""

    def __init__(self) -> None:
        self.world = GroupWorld()
        self.names: dict[str, str] = {}  # member id -> what it is called
        self.member_ids: dict[str, str] = {}  # client -> its newest member id
        self.asked: dict[int, str] = {}  # token -> who asked what
        self.generations: dict[str, int] = {}

    def tell(self, line: str) -> list[str]:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        told: list[str] = []
        getattr(self, f"do_{command}")(told, names, options)
        return told

    # ---- commands ----

    def do_config(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        changed: dict[str, Any] = {key: int(value) for key, value in options.items()}
        self.world.config = self.world.config._replace(**changed)

    def do_at(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        until_ms = START_MS + int(names[0])
        while self.world.timers:
            key, at_ms = min(self.world.timers.items(), key=lambda timer: (timer[1], str(timer[0])))
            if at_ms > until_ms:
                break
            told.append(f"{self.moment(at_ms)} {self.timer(key)}")
            self.world.fire(key)
            self.effects(told)
        self.world.now_ms = until_ms

    def do_join(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        (name,) = names
        token = self.world.token()
        self.asked[token] = f"{name} join"
        offer = options.get("protocols", "range").split(",")
        topics = options.get("topics", "t").split(",")
        member_id = self.member_ids.get(name, "")
        if "instance" in options and options.get("restart"):
            member_id = ""
        self.world.submit(
            events.JoinGroup(
                token,
                self.world.now_ms,
                int(options.get("version", "9")),
                "g",
                member_id,
                name,
                "/127.0.0.1",
                str(token),
                int(options.get("session", "10000")),
                int(options.get("rebalance", "60000")),
                options.get("type", "consumer"),
                tuple(Protocol(protocol, subscription(*topics)) for protocol in offer),
                options.get("instance"),
            )
        )
        self.effects(told)

    def do_sync(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        (name,) = names
        instance = options.pop("instance", None)
        token = self.world.token()
        self.asked[token] = f"{name} sync"
        assigned = tuple((self.member_ids[client], parts.encode()) for client, parts in options.items())
        generation = self.generations.get(name, -1)
        self.world.submit(
            events.SyncGroup(
                token, self.world.now_ms, "g", self.member_ids[name], generation, assigned, instance
            )
        )
        self.effects(told)

    def do_heartbeat(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        for name in names:
            token = self.world.token()
            self.asked[token] = f"{name} heartbeat"
            generation = self.generations.get(name, -1)
            self.world.submit(
                events.Heartbeat(
                    token,
                    self.world.now_ms,
                    "g",
                    self.member_ids[name],
                    generation,
                    options.get("instance"),
                )
            )
            self.effects(told)

    def do_leave(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        token = self.world.token()
        self.asked[token] = "leave"
        leaving = [events.LeavingMember(self.member_ids[name]) for name in names]
        if "instance" in options:
            leaving.append(events.LeavingMember("", options["instance"]))
        self.world.submit(events.LeaveGroup(token, self.world.now_ms, "g", tuple(leaving)))
        self.effects(told)

    def do_commit(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        (name,) = names
        offsets = {}
        for partition, offset in options.items():
            topic, _, number = partition.rpartition("-")
            offsets[topic, int(number)] = int(offset)
        self.asked[self.world._tokens + 1] = f"{name} commit"
        self.world.commit(offsets, Member(self.member_ids.get(name, ""), self.generations.get(name, -1)))
        self.effects(told)

    def do_fetch(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        self.asked[self.world._tokens + 1] = "fetch"
        self.world.ask(events.FetchOffsets, "g", None)
        self.effects(told)

    def do_describe(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        group = self.world.state.groups.get("g")
        if group is None:
            told.append("no group")
            return
        assert isinstance(group, ClassicGroup)
        told.append(f"{group.phase.value}, generation {group.generation}, {group.protocol_type or 'no type'}")
        told.extend(
            f"{self.name(member.member_id)}: {member.assignment.decode() or 'nothing'}"
            for member in group.members.values()
        )

    def do_reload(self, told: list[str], names: list[str], options: dict[str, str]) -> None:
        self.world = self.world.reload()
        self.effects(told)

    # ---- what happened ----

    def effects(self, told: list[str]) -> None:
        self.learn(self.world.last_effects)
        for record in self.world.last_records:
            assert isinstance(record, (Record, OffsetRecord)), f"{record} is of a transaction"
            told.append(self.record(record))
        told.extend(self.effect(effect) for effect in self.world.last_effects)

    def learn(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.result, JoinResult):
                client = self.asked[effect.token].split()[0]
                if effect.result.generation != -1:
                    self.generations[client] = effect.result.generation
                if effect.result.member_id:
                    self.call(effect.result.member_id)
                    if effect.result.error is not ErrorCode.FENCED_INSTANCE_ID:
                        self.member_ids[client] = effect.result.member_id
        for group in self.world.state.groups.values():
            for member in group.members.values():
                self.call(member.member_id)
                if not any(member.member_id == known for known in self.member_ids.values()):
                    self.member_ids.setdefault(member.client_id, member.member_id)

    def call(self, member_id: str) -> None:
        if member_id not in self.names:
            name = member_id.rpartition("-")[0]
            while name in self.names.values():
                name += "'"
            self.names[member_id] = name

    def name(self, member_id: str) -> str:
        return self.names.get(member_id, member_id)

    def moment(self, at_ms: int) -> str:
        return f"{at_ms - START_MS:>6}"

    def timer(self, key: Hashable) -> str:
        assert isinstance(key, tuple)
        kind, *where = key
        return f"{kind} timer" + (f" of {self.name(where[1])}" if len(where) == 2 else "")

    def effect(self, effect: Effect) -> str:
        match effect:
            case Reply(token, result):
                return f"-> {self.asked[token]}: {self.result(result)}"
            case SetTimer(key, at_ms):
                return f"set {self.timer(key)} to {at_ms - START_MS}"
            case CancelTimer(key):
                return f"cancel {self.timer(key)}"
        raise AssertionError(effect)

    def result(self, result: Any) -> str:
        match result:
            case JoinResult(error=ErrorCode.NONE):
                led = f"leader of {', '.join(self.name(member.member_id) for member in result.members)}"
                follows = f"follows {self.name(result.leader_id)}"
                skips = ", does not assign" if result.skip_assignment else ""
                return f"generation {result.generation}, {result.protocol_name}, " + (
                    led + skips if result.members else follows
                )
            case JoinResult(error=error, member_id=member_id):
                return error.name + (f", id {self.name(member_id)}" if member_id else "")
            case SyncResult(error=ErrorCode.NONE, assignment=assignment):
                return f"gets {assignment.decode() or 'nothing'}"
            case SyncResult(error=error):
                return error.name
            case LeaveResult(members=members):
                return ", ".join(
                    f"{self.name(leaving.member_id) or leaving.group_instance_id} {error.name}"
                    for leaving, error in members
                )
            case FetchResult(topics=topics):
                return (
                    ", ".join(
                        f"{topic}-{fetched.partition}={fetched.offset}"
                        for topic, _, partitions in topics
                        for fetched in partitions
                    )
                    or "nothing"
                )
            case ErrorCode():
                return result.name
            case tuple():
                return ", ".join(
                    f"{topic}-{partition} {error.name}"
                    for topic, _, partitions in result
                    for partition, error in partitions
                )
        raise AssertionError(result)

    def record(self, record: AnyRecord) -> str:
        if isinstance(record, OffsetRecord):
            written = "forget" if record.committed is None else f"offset {record.committed.offset} of"
            return f"write {written} {record.topic}-{record.partition}"
        value = record.value
        if value is None:
            return "write group is gone"
        assert isinstance(value, GroupMetadataValue)
        members = ", ".join(
            f"{self.name(member.member_id)}={member.assignment.decode() or 'nothing'}"
            for member in value.members
        )
        return f"write group generation {value.generation}" + (f": {members}" if members else ", empty")
