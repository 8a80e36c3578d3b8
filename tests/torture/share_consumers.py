"""Consumers of a share group that accept, release and reject records, crash, and outlive their locks.

    python -m tests.torture.share_consumers --records 100000 --consumers 50 [--broker apache]

All run in one event loop, so that what the history says happened in that order.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pykafka_broker.client.aio import AsyncConnection, connect
from pykafka_broker.client.core.addresses import Address, parse_addresses
from pykafka_broker.client.core.coordinators import GROUP
from pykafka_broker.client.core.metadata import leaders_of
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.client.core.share_group import (
    BATCH_OPTIMIZED,
    NO_SESSION,
    RECORD_LIMIT,
    Acknowledgement,
    Acquired,
    Membership,
    ShareSession,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker
from tests.torture.share_history import Place, ShareHistory, anomalies

TOPIC, SHARE_GROUP = "parcels", "couriers"
#: The shortest lock that the group may have here; Kafka's is 15 s.
LOCK_MS = 1_000
PROPERTIES = {
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    # Crashed members are counted until their sessions end.
    "group.share.max.size": "1000",
}
MAX_WAIT_MS = 200
MAX_BYTES = 1 << 20
#: How often a consumer does something else than to accept a record, or a whole poll.
RELEASED, REJECTED, CRASHES, SLEEPS, LEAVES = 0.1, 0.02, 0.03, 0.02, 0.03
#: How often it wants no more records than it asks for; otherwise whole batches come, which may be many more.
LIMITED = 0.9
PAUSE_S = 0.05
#: So long a group may get nothing done before it counts as standing still.
PATIENCE_S = 90.0


@dataclass
class Job:
    """The work of all consumers, and how they go about it."""

    addresses: Sequence[Address]
    written: set[Place]
    history: ShareHistory
    dice: random.Random
    max_records: int = 25

    def __post_init__(self) -> None:
        self._open = set(self.written)

    @property
    def is_done(self) -> bool:
        """Whether no record is to come any more; what is done stays so, and is not looked at again."""
        while self._open and self.history.is_done(place := next(iter(self._open))):
            self._open.discard(place)
        return not self._open


class ShareConsumer:
    """One consumer: a member of the group from its start to its end or crash."""

    def __init__(self, job: Job, member_id: str) -> None:
        self._job = job
        self._member = Membership(SHARE_GROUP, member_id, [TOPIC])
        self._next_s = 0.0
        self._connections: dict[int, AsyncConnection] = {}
        self._nodes: dict[int, Address] = {}
        self._sessions: dict[int, ShareSession] = {}
        self._leaders: dict[int, int] = {}
        self._coordinator: int | None = None
        self._topic_id = b""

    async def live(self) -> None:
        """Consume until the job is done, or this consumer leaves or crashes."""
        job = self._job
        try:
            await self._learn()
            while not job.is_done:
                if time.monotonic() >= self._next_s:
                    await self._beat()
                if not await self._poll():
                    return
            await self._leave()
        finally:
            for connection in self._connections.values():
                await connection.close()

    async def _poll(self) -> bool:
        """Fetch from each leader once; return whether to go on."""
        job = self._job
        assigned = {partition for topic_id, partition in self._member.assigned if topic_id == self._topic_id}
        if not assigned:
            await asyncio.sleep(PAUSE_S)
            return True
        by_leader: dict[int, list[int]] = {}
        for partition in assigned:
            by_leader.setdefault(self._leaders[partition], []).append(partition)
        for leader, partitions in by_leader.items():
            session = self._sessions.setdefault(leader, ShareSession(self._member, self._topic_id))
            acquired = await self._fetch(leader, session, partitions)
            chance = job.dice.random()
            if not acquired:
                continue
            if chance < CRASHES:
                job.history.events["crashed"] += 1
                return False
            if chance < CRASHES + SLEEPS:
                job.history.events["slept longer than its lock"] += 1
                await asyncio.sleep(1.5 * LOCK_MS / 1_000)
            told = [(Place(each.partition, each.record.offset), self._choose()) for each in acquired]
            for place, how in told:
                session.acknowledge(*place, how)
            if chance > 1 - LEAVES:
                job.history.events["left"] += 1
                await self._leave({leader: told})
                return False
            await self._acknowledge(leader, session, told)
        return True

    def _choose(self) -> Acknowledgement:
        chance = self._job.dice.random()
        if chance < RELEASED:
            return Acknowledgement.RELEASE
        return Acknowledgement.REJECT if chance < RELEASED + REJECTED else Acknowledgement.ACCEPT

    # ---- requests ----

    async def _fetch(self, leader: int, session: ShareSession, partitions: Sequence[int]) -> list[Acquired]:
        request = session.fetch(
            partitions,
            max_records=self._job.max_records,
            max_wait_ms=MAX_WAIT_MS,
            partition_max_bytes=MAX_BYTES,
            acquire_mode=RECORD_LIMIT if self._job.dice.random() < LIMITED else BATCH_OPTIMIZED,
        )
        before = len(session.refused)
        response = await (await self._connection(leader)).send(request)
        try:
            acquired = session.fetched(response)
        except KafkaError as error:
            self._refused(error)
            return []
        # The gaps of the fetch before.
        self._settle((), session.refused[before:])
        for each in acquired:
            self._job.history.delivered(Place(each.partition, each.record.offset), each.delivery_count)
        if session.has_moved:
            await self._learn()
        return acquired

    async def _acknowledge(
        self, leader: int, session: ShareSession, told: Sequence[tuple[Place, Acknowledgement]]
    ) -> None:
        before = len(session.refused)
        try:
            response = await (await self._connection(leader)).send(session.acknowledging())
            session.acknowledged(response)
        except KafkaError as error:
            self._refused(error)
            return
        except OSError:
            for place, how in told:
                self._job.history.lost_sight(place, how)
            raise
        self._settle(told, session.refused[before:])

    def _refused(self, error: KafkaError) -> None:
        self._job.history.events[f"refused: {error.code.name}"] += 1
        if error.code not in NO_SESSION:
            raise error

    def _settle(
        self, told: Sequence[tuple[Place, Acknowledgement]], refused: Sequence[tuple[int, ErrorCode]]
    ) -> None:
        partitions = dict(refused)
        for error in partitions.values():
            self._job.history.events[f"not acknowledged: {error.name}"] += 1
        for place, how in told:
            if place.partition not in partitions:
                self._job.history.took(place, how)

    async def _leave(self, told: dict[int, Sequence[tuple[Place, Acknowledgement]]] | None = None) -> None:
        for leader, session in self._sessions.items():
            if not session.has_begun:
                continue
            before = len(session.refused)
            session.closed(await (await self._connection(leader)).send(session.close()))
            self._settle((told or {}).get(leader, ()), session.refused[before:])
        self._member.leave()
        await self._beat()

    async def _beat(self) -> None:
        while True:
            if self._coordinator is None:
                self._coordinator = await self._find_coordinator()
            connection = await self._connection(self._coordinator)
            response = await connection.send(self._member.heartbeat())
            if response.error_code in RETRIABLE:
                self._coordinator = None
                await asyncio.sleep(PAUSE_S)
            elif not self._member.answered(response):
                self._next_s = time.monotonic() + self._member.interval_ms / 1_000
                return

    async def _find_coordinator(self) -> int:
        while True:
            anybody = await self._connection(None)
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[SHARE_GROUP])
            [found] = (await anybody.send(request)).coordinators
            if not found.error_code:
                self._nodes[found.node_id] = Address(found.host, found.port)
                return int(found.node_id)
            await asyncio.sleep(PAUSE_S)

    async def _learn(self) -> None:
        """Look up the leaders."""
        anybody = await self._connection(None)
        asked = [MetadataRequestTopic(name=TOPIC)]
        response = await anybody.send(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        self._nodes = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._topic_id = response.topics[0].topic_id
        self._leaders = leaders_of(response.topics[0])

    async def _connection(self, node_id: int | None) -> AsyncConnection:
        """That to a node; to any of those that are known at first, if None."""
        key = -1 if node_id is None else node_id
        known = self._connections.get(key)
        if known is None or known.is_closed:
            address = self._job.addresses[0] if node_id is None else self._nodes[node_id]
            known = self._connections[key] = await connect(address)
        return known


async def consume(job: Job, consumers: int) -> None:
    """Let so many consumers at a time do the job; a new one comes for each that crashed or left.

    Raises:
        TimeoutError: nothing got done for a long time.
    """
    numbers = iter(range(1_000_000))

    async def one_after_the_other() -> None:
        while not job.is_done:
            await ShareConsumer(job, f"courier-{next(numbers)}").live()

    tasks = [asyncio.create_task(one_after_the_other()) for _ in range(consumers)]
    done, last = -1, time.monotonic()
    try:
        while not all(task.done() for task in tasks):
            await asyncio.wait(tasks, timeout=1, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done():
                    task.result()
            now = len(job.history.settled)
            if now > done:
                done, last = now, time.monotonic()
            if time.monotonic() - last > PATIENCE_S:
                raise TimeoutError(
                    f"{done} of {len(job.written)} are settled, and no more for {PATIENCE_S} s"
                )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def prepare(address: str, records: int, partitions: int, replicas: int = 1) -> set[Place]:
    """A topic with so many records, and a group that reads it from its beginning."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, partitions, replicas)])[TOPIC].result(30)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, SHARE_GROUP, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    written: set[Place] = set()
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 5})

    def note(error: Any, message: Any) -> None:
        assert error is None, error
        written.add(Place(message.partition(), message.offset()))

    for number in range(records):
        producer.produce(TOPIC, b"%d" % number, partition=number % partitions, on_delivery=note)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush(60)
    assert len(written) == records
    return written


def run(broker: BrokerProcess, records: int, consumers: int, partitions: int, seed: int) -> ShareHistory:
    """Let consumers of a share group read so many records. Raises AssertionError on an anomaly."""
    written = prepare(broker.address, records, partitions)
    job = Job(parse_addresses(broker.address), written, ShareHistory(), random.Random(seed))
    asyncio.run(consume(job, consumers))
    assert anomalies(job.history, written) == {}
    return job.history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--consumers", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    asked = parser.parse_args()
    kind = ApacheBroker if asked.broker == "apache" else PykafkaBroker
    with kind(PROPERTIES) as broker:
        began = time.monotonic()
        history = run(broker, asked.records, asked.consumers, asked.partitions, asked.seed)
        took = time.monotonic() - began
    deliveries = sum(map(len, history.deliveries.values()))
    exhausted = len(history.deliveries.keys() - history.settled.keys() - history.unknown)
    print(
        f"{asked.records} records, {deliveries} deliveries to {asked.consumers} consumers in {took:.0f} s: "
        f"{len(history.settled)} settled, {exhausted} at the delivery limit, {len(history.unknown)} unknown"
    )
    for name, count in history.events.most_common():
        print(f"{count:9,} {name}")


if __name__ == "__main__":
    main()
