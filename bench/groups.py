"""The group coordinator under load: members that gather, members that stay alive, offsets that are committed.

Members are played over bare connections with our own codec, both protocols as their clients speak them, so
that the coordinator works and not the clients.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench import wire
from bench.process import cpu_seconds
from pykafka_broker.client.aio import FrameStream
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import read_response
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from pykafka_broker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PAUSE_S = 0.02
#: Members that share a connection; a classic member needs one of its own, for its joins wait.
MEMBERS_PER_CONNECTION = 50
HEARTBEATS_IN_FLIGHT = 20
NOT_YET = {14, 15, 16}
#: An assignment of the consumer protocol without partitions.
NOTHING = b"\0\1" + bytes(8)


class Connection:
    """One connection, used by one task at a time."""

    def __init__(self, stream: FrameStream) -> None:
        self._stream = stream

    @classmethod
    async def to(cls, address: str) -> Connection:
        return cls(await FrameStream.open(parse_address(address)))

    async def send(self, request: object, version: int) -> Any:
        self._stream.write(wire.frame(request, version))
        return read_response(api_key_of(request), version, await self._stream.receive()).message

    async def close(self) -> None:
        await self._stream.close()


async def coordinated(address: str, group: str) -> Connection:
    """A connection to the coordinator of a group, which is ready."""
    connection = await Connection.to(address)
    while True:
        found = await connection.send(FindCoordinatorRequest(coordinator_keys=[group], key_type=0), 4)
        if not found.coordinators[0].error_code:
            answer = await connection.send(beat(group, "unknown", -1), 1)
            if answer.error_code not in NOT_YET:
                return connection
        await asyncio.sleep(PAUSE_S)


def beat(group: str, member: str, epoch: int, **said: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **said)


# ---- gathering ----


class Consumer:
    """A member with the consumer protocol."""

    def __init__(self, group: str, name: str, topic: str) -> None:
        self.group, self.name, self.topic = group, name, topic
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    async def beat(self, connection: Connection) -> None:
        said: dict[str, Any] = {"topic_partitions": self.owned}
        if not self.epoch:
            said |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [self.topic]}
        answer = await connection.send(beat(self.group, self.name, self.epoch, **said), 1)
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions

    @property
    def size(self) -> int:
        return sum(len(topic.partitions) for topic in self.owned)


async def gather_consumers(address: str, group: str, topic: str, partitions: int, count: int) -> float:
    """Seconds until `count` members with the consumer protocol have equal shares of the partitions."""
    await coordinated(address, group)
    begun = time.perf_counter()
    await settled_consumers(address, group, topic, partitions, count)
    return time.perf_counter() - begun


async def settled_consumers(
    address: str, group: str, topic: str, partitions: int, count: int
) -> list[Consumer]:
    """Members that share all partitions of a topic."""
    await coordinated(address, group)
    members = [Consumer(group, f"member-{number}", topic) for number in range(count)]
    shares = [
        (await Connection.to(address), members[start : start + MEMBERS_PER_CONNECTION])
        for start in range(0, count, MEMBERS_PER_CONNECTION)
    ]

    async def keep_beating(connection: Connection, share: list[Consumer]) -> None:
        while True:
            for member in share:
                await member.beat(connection)
            if all(member.size == partitions // count for member in members):
                return
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(keep_beating(*share) for share in shares))
    return members


async def gather_classic(address: str, group: str, topic: str, count: int) -> float:
    """Seconds until `count` members with the classic protocol have their assignments of one generation."""
    await coordinated(address, group)
    connections = [await Connection.to(address) for _ in range(count)]
    subscription = b"\0\1" + encode(ConsumerProtocolSubscription(topics=[topic]), 1)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
    generations = [0] * count
    begun = time.perf_counter()

    def settled() -> bool:
        return generations[0] > 0 and len(set(generations)) == 1

    async def joined(place: int, connection: Connection, name: str) -> str:
        """Join and sync until that succeeds; the member's id."""
        while True:
            answer = await connection.send(
                JoinGroupRequest(
                    group_id=group,
                    session_timeout_ms=45_000,
                    rebalance_timeout_ms=60_000,
                    member_id=name,
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                9,
            )
            name = answer.member_id
            if answer.error_code:
                continue
            assignments = [
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=NOTHING)
                for each in answer.members
            ]
            synced = await connection.send(
                SyncGroupRequest(
                    group_id=group,
                    generation_id=answer.generation_id,
                    member_id=name,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=assignments,
                ),
                5,
            )
            if not synced.error_code:
                generations[place] = answer.generation_id
                return name

    async def member(place: int, connection: Connection) -> None:
        name = await joined(place, connection, "")
        while not settled():
            await asyncio.sleep(PAUSE_S)
            alive = HeartbeatRequest(group_id=group, generation_id=generations[place], member_id=name)
            if (await connection.send(alive, 4)).error_code:
                name = await joined(place, connection, name)

    await asyncio.gather(*(member(place, each) for place, each in enumerate(connections)))
    seconds = time.perf_counter() - begun
    for connection in connections:
        await connection.close()
    return seconds


# ---- staying alive, and committing ----


class Beats:
    """Heartbeats of some members over one connection, all on their way together."""

    def __init__(self, frames: list[bytes]) -> None:
        self.request = b"".join(frames)

    def begin(self) -> bytes:
        return self.request

    def answered(self, received: memoryview) -> None:
        # Size, correlation id, tags, throttle time; then the error.
        assert bytes(received[13:15]) == b"\0\0", bytes(received)


def heartbeats(address: str, pid: int, topic: str, turns: int, count: int = 100) -> dict[str, float]:
    """Heartbeats of `count` settled members, each with one partition, as many as the coordinator answers."""
    group = "bench-heartbeats"
    members = asyncio.run(settled_consumers(address, group, topic, count, count))
    frames = [wire.frame(beat(group, member.name, member.epoch), 1) for member in members]
    shares = range(0, count, HEARTBEATS_IN_FLIGHT)
    speakers = [Beats(frames[start : start + HEARTBEATS_IN_FLIGHT]) for start in shares]
    used = cpu_seconds(pid)
    figures = wire.many_connections(address, speakers, turns, answers=HEARTBEATS_IN_FLIGHT)
    used = cpu_seconds(pid) - used
    asked = turns * (1 + wire.WARM_UP) * HEARTBEATS_IN_FLIGHT
    return {"per_s": figures["per_s"] * HEARTBEATS_IN_FLIGHT, "per_core": asked / used}


class Committer:
    """Commits one offset again and again."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        asyncio.run(ready_for(address, group))
        self.request = wire.frame(commit(group, topic, [0]), 9)

    def begin(self) -> bytes:
        return self.request

    def answered(self, received: memoryview) -> None:
        # The only partition's error, and the ends of three structs that have no tags.
        assert bytes(received[-5:]) == bytes(5), bytes(received)


def commits(address: str, pid: int, topic: str, turns: int, count: int = 16) -> dict[str, float]:
    """Commits of one offset each by `count` groups, one after the other per group."""
    speakers = [Committer(address, f"bench-commits-{number}", topic) for number in range(count)]
    used = cpu_seconds(pid)
    figures = wire.many_connections(address, speakers, turns)
    used = cpu_seconds(pid) - used
    return {
        "per_s": figures["per_s"],
        "p50_us": figures["p50_ms"] * 1e3,
        "p99_us": figures["p99_ms"] * 1e3,
        "per_core": turns * (1 + wire.WARM_UP) / used,
    }


async def ready_for(address: str, group: str) -> None:
    """Return when the coordinator of a group is ready."""
    connection = await coordinated(address, group)
    await connection.close()


def commit(group: str, topic: str, partitions: list[int]) -> OffsetCommitRequest:
    offsets = [
        OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata="")
        for partition in partitions
    ]
    return OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=offsets)],
    )


async def store_commits(address: str, topic: str, partitions: int, total: int, groups: int = 10) -> None:
    """`total` committed offsets, over and over of the same partitions, in requests of 1,000."""

    async def keep_committing(group: str) -> None:
        connection = await coordinated(address, group)
        step = min(1_000, partitions)
        request = commit(group, topic, list(range(step)))
        for _ in range(total // groups // step):
            answer = await connection.send(request, 9)
            assert not any(each.error_code for each in answer.topics[0].partitions), answer

    await asyncio.gather(*(keep_committing(f"bench-load-{number}") for number in range(groups)))


async def served(address: str, groups: int = 10) -> None:
    """Return when every one of these groups is served, after a restart."""
    await asyncio.gather(*(coordinated(address, f"bench-load-{number}") for number in range(groups)))
