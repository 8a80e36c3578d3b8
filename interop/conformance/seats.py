"""Members of classic groups on random walks, each at a connection of its own: a request may have to wait.

A seat says what its member believes, and hears every answer. A seat that is answered within a short while is
heard in the order of the seats, so that two brokers that answer the same members are told alike.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from interop.conformance.groups import Member, beating, joining, leaving, one, syncing
from interop.conformance.talk import ANY, E, Pending, Talk
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.join_group import JoinGroupResponse
from pykafka_broker.protocol.messages.leave_group import LeaveGroupResponse
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse

#: No seat is answered any more if none was for so long.
QUIET_S = 0.4
#: No walk lasts as long.
SESSION_MS = 120_000

JOIN_VERSIONS = (2, 3, 3, 4, 5, 6, 7, 8, 9, 9)
STATIC_JOIN_VERSIONS = (5, 6, 7, 8, 9, 9)


@dataclass
class Seat:
    """The state that one member believes in."""

    number: int
    group: str
    talk: Talk
    instance: str | None = None
    id: str = ""
    generation: int = -1
    protocol: str = "range"
    #: Told to the leader; nothing to others.
    members: list[str] = field(default_factory=list)
    must_join: bool = True
    must_sync: bool = False
    #: It was the last to be told that it leads.
    leads: bool = False
    #: A request that is not answered yet.
    pending: Pending | None = None

    def member(self, generation: int | None = None) -> Member:
        return Member(
            self.group, self.id, self.generation if generation is None else generation, self.instance
        )

    def hear(self, answer: Any) -> None:
        error = answer.error_code
        match answer:
            case JoinGroupResponse():
                self._joined(answer)
            case SyncGroupResponse():
                self.must_sync = self.must_sync and error != E.NONE
            case HeartbeatResponse() | LeaveGroupResponse():
                pass
        if error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
            self.gone()
        elif error in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION):
            self.must_join = True

    def _joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == E.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
        elif answer.error_code == E.NONE:
            self.id, self.generation = answer.member_id, answer.generation_id
            self.protocol = answer.protocol_name or self.protocol
            self.members = [each.member_id for each in answer.members]
            self.must_join, self.must_sync = False, True

    def gone(self) -> None:
        self.id, self.generation, self.members = "", -1, []
        self.must_join, self.must_sync = True, False


class Seats:
    """The seats of one group."""

    def __init__(self, seats: Iterable[Seat], chance: Random) -> None:
        self.all, self.chance = list(seats), chance

    def send(self, seat: Seat, request: Any, version: int) -> None:
        """Send at the seat's own connection, which must be free, and hear who is answered."""
        seat.pending = seat.talk.send(request, version=version)
        self.settle()

    def ask(self, seat: Seat, request: Any, version: int, talk: Talk) -> None:
        """Ask what is answered at once, at the seat's connection if that is free and at `talk` if not."""
        free = seat.talk if seat.pending is None else talk
        seat.hear(free.ask(request, ANY, version=version))
        self.settle()

    def settle(self) -> None:
        """Hear the seats that are answered."""
        heard: list[tuple[Seat, Pending, Any]] = []
        while waiting := {seat.talk.wire.socket: seat for seat in self.all if seat.pending is not None}:
            ready, _, _ = select.select(list(waiting), [], [], QUIET_S)
            if not ready:
                break
            for seat in (waiting[each] for each in ready):
                assert seat.pending is not None
                heard.append((seat, seat.pending, seat.pending.receive()))
                seat.pending = None
        for seat, pending, answer in sorted(heard, key=lambda each: each[0].number):
            pending.compare(answer, (ANY,), {})
            seat.hear(answer)
            if isinstance(answer, JoinGroupResponse) and answer.members:
                for each in self.all:
                    each.leads = each is seat

    # ---- what a member may do ----

    def join(self, seat: Seat, protocols: Mapping[str, bytes], *, member_id: str | None = None) -> None:
        versions = JOIN_VERSIONS if seat.instance is None else STATIC_JOIN_VERSIONS
        request = joining(
            seat.group,
            seat.id if member_id is None else member_id,
            instance=seat.instance,
            protocols=protocols,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
        )
        self.send(seat, request, self.chance.choice(versions))

    def sync(self, seat: Seat, assignments: Mapping[str, bytes]) -> None:
        """Nearly always in the right generation and for the right protocol."""
        generation = seat.generation + self.chance.choices([0, 1, -1], [20, 1, 1])[0]
        protocol = self.chance.choices([seat.protocol, "another", None], [20, 1, 1])[0]
        request = syncing(seat.member(generation), assignments, protocol_name=protocol)
        self.send(seat, request, self.chance.choice((3, 4, 5, 5)))

    def beat(self, seat: Seat, talk: Talk) -> None:
        generation = seat.generation + self.chance.choices([0, 1, -1], [12, 1, 1])[0]
        self.ask(seat, beating(seat.member(generation)), self.chance.choice((3, 4)), talk)

    def leave(self, seat: Seat, talk: Talk) -> None:
        """By its member id, or as an administrator removes an instance."""
        member = seat.member()
        if seat.instance is not None and self.chance.random() < 0.5:
            member.id = ""
        request = leaving(seat.group, one(member))
        self.ask(seat, request, self.chance.choice((3, 4, 5)), talk)
        seat.gone()
