"""A storm: the leaders of hundreds of classic groups want a rebalance in the same moment.

Every member speaks over a connection of its own, as clients do, and beats twice a second. Measured are the
time until every group has its next assignment, the members that lost their place meanwhile, and the wait of
the slowest heartbeat.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from bench.groups import NOTHING, PAUSE_S, Connection, coordinated
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS, MEMBERS_PER_GROUP = 300, 3
SESSION_MS = 6_000
REBALANCE_TIMEOUT_MS = 60_000
BEAT_S = 0.5
#: Joins as before KIP-394, which need not be asked twice.
JOIN_VERSION, SYNC_VERSION, BEAT_VERSION = 3, 3, 4


class Figures(NamedTuple):
    """The figures of a storm."""

    #: Until every group had gathered for the first time.
    gathered_s: float
    #: Until every group had its next assignment.
    seconds: float
    #: The slowest heartbeat's wait.
    slowest_beat_ms: float
    #: Members that were told that they are none any more.
    lost: int


class Member:
    """One member of one group, which leads it if it was the first to come."""

    def __init__(self, group: str, protocols: list[JoinGroupRequestProtocol], session_ms: int) -> None:
        self.group = group
        self.protocols = protocols
        self.session_ms = session_ms
        self.id = ""
        self.generation = 0
        self.leads = False
        self.lost = 0
        self.slowest_s = 0.0

    async def join(self) -> None:
        """Join and sync until that succeeds."""
        while True:
            answer = await self.connection.send(
                JoinGroupRequest(
                    group_id=self.group,
                    session_timeout_ms=self.session_ms,
                    rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                    member_id=self.id,
                    protocol_type="consumer",
                    protocols=self.protocols,
                ),
                JOIN_VERSION,
            )
            if answer.error_code:
                self.mind(answer.error_code)
                continue
            self.id, self.leads = answer.member_id, answer.leader == answer.member_id
            synced = await self.connection.send(
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=answer.generation_id,
                    member_id=self.id,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=each.member_id, assignment=NOTHING)
                        for each in answer.members
                    ],
                ),
                SYNC_VERSION,
            )
            if not synced.error_code:
                self.generation = answer.generation_id
                return
            self.mind(synced.error_code)

    def mind(self, error: int) -> None:
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.lost += 1
            self.id = ""

    async def live(self, begins: asyncio.Event) -> None:
        """Beat, join again when told to, and, as a leader, when the storm begins."""
        while True:
            asked = time.perf_counter()
            alive = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id)
            error = (await self.connection.send(alive, BEAT_VERSION)).error_code
            self.slowest_s = max(self.slowest_s, time.perf_counter() - asked)
            if error:
                self.mind(error)
                await self.join()
            due = asked + BEAT_S
            while time.perf_counter() < due:
                await asyncio.sleep(PAUSE_S)
                if self.leads and begins.is_set() and self.generation == self.first_generation:
                    await self.join()

    async def connect(self, address: str) -> None:
        self.connection = await Connection.to(address)

    def remember(self) -> None:
        """The next generation is that of the storm."""
        self.first_generation = self.generation


async def storm(
    address: str, topic: str, groups: int = GROUPS, *, prefix: str | None = None, session_ms: int = SESSION_MS
) -> Figures:
    """Let `groups` gather, called `prefix`-0 and so on, and their leaders ask for a rebalance together."""
    subscription = b"\0\1" + encode(ConsumerProtocolSubscription(topics=[topic]), 1)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
    prefix = prefix or f"storm-{time.time_ns()}"
    await (await coordinated(address, prefix)).close()
    members = [
        Member(f"{prefix}-{number}", protocols, session_ms)
        for number in range(groups)
        for _ in range(MEMBERS_PER_GROUP)
    ]
    begun = time.perf_counter()
    for member in members:
        await member.connect(address)
    await asyncio.gather(*(member.join() for member in members))
    begins = asyncio.Event()
    for member in members:
        member.remember()
    lives = [asyncio.create_task(member.live(begins)) for member in members]
    await settled(members, lives)
    gathered_s = time.perf_counter() - begun
    for member in members:
        member.remember()
        member.slowest_s, member.lost = 0.0, 0
    began = time.perf_counter()
    begins.set()
    await settled(members, lives, newer=True)
    seconds = time.perf_counter() - began
    for life in lives:
        life.cancel()
    await asyncio.gather(*lives, return_exceptions=True)
    await asyncio.gather(*(member.connection.close() for member in members))
    slowest_ms = 1_000 * max(member.slowest_s for member in members)
    return Figures(gathered_s, seconds, slowest_ms, sum(member.lost for member in members))


async def settled(members: list[Member], lives: list[asyncio.Task[None]], *, newer: bool = False) -> None:
    """Return when all members of each group are in one generation (a newer one than they remember)."""
    while True:
        for life in lives:
            if life.done():
                life.result()
        generations: dict[str, set[int]] = {}
        for member in members:
            generations.setdefault(member.group, set()).add(member.generation)
        agree = all(len(each) == 1 for each in generations.values())
        if agree and (not newer or all(member.generation > member.first_generation for member in members)):
            return
        await asyncio.sleep(0.01)
