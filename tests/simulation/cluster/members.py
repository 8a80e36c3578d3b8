"""Members of groups, of both protocols: they join, share the partitions, commit one offset after the other.

Now and then a member is away for so long that the group goes on without it; what it then commits for its old
generation must be refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.client.core.coordinators import find_coordinator
from pykafka_broker.client.core.metadata import find_topic
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.cluster.client import REQUEST_MS, RETRY_MS, TOPIC, Client, ask
from tests.simulation.cluster.ledger import Held
from tests.simulation.cluster.offsets import commit_one, look_at_committed

HEARTBEAT_MS = 1_000
SESSION_MS = 6_000
REBALANCE_MS = 3_000
#: A member of a consumer group is sure of its partitions for this time after a heartbeat. A coordinator, its
#: clock perhaps a tenth too fast, takes none away before the session is over, or the time to give one up.
SURE_MS = 9 * min(SESSION_MS, REBALANCE_MS) // 10
#: A member looks what is committed before each commit of a multiple of this offset.
LOOKS_EVERY = 5
#: Nodes whose members come and go this quickly.
KEYS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
}
_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_PROTOCOL = "numbers"


class Member:
    """What both kinds of members do with the partitions they have."""

    def __init__(self, client: Client, group: str, partitions: int) -> None:
        self.client = client
        self.group = group
        self.partitions = partitions
        self.member_id = ""
        #: The generation, or the member epoch.
        self.generation = -1
        #: The partitions it has, and what was committed last for each; None: it has not looked yet.
        self.owned: dict[int, int | None] = {}
        self._coordinator: int | None = None
        client.timeout_ms = REBALANCE_MS + REQUEST_MS

    async def run(self) -> None:
        """Be a member until the simulation wants no more."""
        client = self.client
        while not client.is_over:
            try:
                if self._coordinator is None:
                    attempt = client.attempt(REQUEST_MS)
                    self._coordinator = await client.run(
                        find_coordinator(client.brokers, self.group, attempt)
                    )
                code = await self.step(self._coordinator)
            except CANNOT:
                # An answer that is lost leaves it open what was done.
                self.begin_anew()
                code = ErrorCode.NOT_COORDINATOR
            if code in _ELSEWHERE:
                self._coordinator = None
                await client.pause(RETRY_MS)
            elif code:
                self.begin_anew()
                await client.pause(RETRY_MS)
            elif client.world.happens(0.02):
                await client.clock.sleep(2 * SESSION_MS)
                self._coordinator = None
            else:
                await client.pause(HEARTBEAT_MS // 2)

    def begin_anew(self) -> None:
        """Have nothing, and join as another member."""
        self.member_id, self.generation = "", -1
        self.owned = {}

    def now_owns(self, partitions: Iterable[int]) -> None:
        """Keep what it has of these partitions; of the others it looks what was committed."""
        self.owned = {partition: self.owned.get(partition) for partition in sorted(partitions)}

    async def step(self, node_id: int) -> ErrorCode:
        """One heartbeat, and one commit for each partition; the error with which it has to deal."""
        raise NotImplementedError

    async def commit_all(self, node_id: int) -> ErrorCode:
        """Commit the next offset of each partition."""
        for partition, last in list(self.owned.items()):
            found = last
            if found is None or (found + 1) % LOOKS_EVERY == 0:
                found = await look_at_committed(self.client, node_id, self.group, partition)
                if found is None:
                    continue
            code = ErrorCode(
                await commit_one(
                    self.client,
                    node_id,
                    self.group,
                    found + 1,
                    partition=partition,
                    member_id=self.member_id,
                    generation=self.generation,
                )
            )
            if code:
                return code
            self.owned[partition] = found + 1
        return ErrorCode.NONE


class ClassicMember(Member):
    """A member of a classic group; its leader shares the partitions out."""

    async def step(self, node_id: int) -> ErrorCode:
        if self.generation < 0:
            return await self._join(node_id)
        if code := await self.commit_all(node_id):
            return self._lost(code)
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        return self._lost(ErrorCode((await self.client.run(ask(request, node_id))).error_code))

    def _lost(self, code: ErrorCode) -> ErrorCode:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.generation, self.owned = -1, {}
            return ErrorCode.NONE
        return code

    async def _join(self, node_id: int) -> ErrorCode:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type="simulation",
            protocols=[JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b"")],
        )
        joined: JoinGroupResponse = await self.client.run(ask(request, node_id))
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return ErrorCode.NONE
        if code:
            return code
        self.member_id = joined.member_id
        shares: dict[str, list[int]] = {member.member_id: [] for member in joined.members}
        for partition in range(self.partitions if shares else 0):
            shares[sorted(shares)[partition % len(shares)]].append(partition)
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="simulation",
            protocol_name=_PROTOCOL,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=json.dumps(share).encode())
                for member, share in shares.items()
            ],
        )
        answer = await self.client.run(ask(sync, node_id))
        if answer.error_code:
            return self._lost(ErrorCode(answer.error_code))
        self.generation = joined.generation_id
        self.now_owns(json.loads(bytes(answer.assignment)))
        for partition in self.owned:
            self.client.ledger.owns(self.group, self.generation, partition, self.member_id)
        return ErrorCode.NONE


class ConsumerMember(Member):
    """A member of a consumer group (KIP-848): the broker shares the partitions out."""

    topic_id = b""

    def begin_anew(self) -> None:
        self.client.ledger.has_left(self.group, self.member_id)
        super().begin_anew()

    async def step(self, node_id: int) -> ErrorCode:
        client = self.client
        if not self.topic_id:
            topic = await client.run(find_topic(client.brokers, TOPIC, client.attempt(REQUEST_MS)))
            self.topic_id = topic.topic_id
        code = await self.commit_all(node_id)
        if code and code is not ErrorCode.STALE_MEMBER_EPOCH:
            return code
        if not self.member_id:
            self.member_id, self.generation = f"{client.name}-{client.world.random.getrandbits(64):x}", 0
        has = [TopicPartitions(topic_id=self.topic_id, partitions=list(self.owned))] if self.owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.generation,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[TOPIC],
            topic_partitions=has,
        )
        ledger, sent_ms = client.ledger, client.world.now_ms
        ledger.gives_up(self.group, self.member_id, self.owned)
        # One that is cut off, and does not know that another one has taken over, answers as before.
        is_coordinator = client.clients.is_coordinator(node_id, self.group)
        answer: ConsumerGroupHeartbeatResponse = await client.run(ask(request, node_id))
        if answer.error_code:
            return ErrorCode(answer.error_code)
        self.generation = answer.member_epoch
        if answer.assignment is not None:
            self.now_owns(p for topic in answer.assignment.topic_partitions for p in topic.partitions)
        if is_coordinator:
            held = Held(frozenset(self.owned), sent_ms + SURE_MS)
            ledger.holds(self.group, self.member_id, held, client.world.now_ms)
        return ErrorCode.NONE


def unshared(members: Iterable[Member]) -> str | None:
    """The first partition of a group that not exactly one of all its members has; None if there is none."""
    owners: dict[tuple[str, int], list[str]] = {}
    for member in members:
        for partition in range(member.partitions):
            owners.setdefault((member.group, partition), [])
        for partition in member.owned:
            owners[member.group, partition].append(member.client.name)
    for (group, partition), names in owners.items():
        if len(names) != 1:
            return f"partition {partition} of {group} is with {names}"
    return None
