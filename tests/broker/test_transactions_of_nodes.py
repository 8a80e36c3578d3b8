"""Transactions and groups in a cluster whose partitions and coordinators are on different brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.log.manager.cold_reads import ColdReads
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.protocol.messages import create_topics as creation
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import TOPIC_RESOURCE, User
from tests.apis.transacting import Producer, committed_values, completed, described
from tests.support.clusters import Cluster

GROUP, TRANSACTION = 0, 1
#: Six partitions of each coordinator's topic, spread over three brokers.
SPREAD = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Users:
    """A client of each broker of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._users: dict[int, User] = {}
        self._stack = AsyncExitStack()

    async def of(self, node_id: int) -> User:
        if node_id not in self._users:
            self._users[node_id] = await self._stack.enter_async_context(self.cluster.user_of(node_id))
        return self._users[node_id]

    def forget(self, node_id: int) -> None:
        """The broker has ended, and the connection with it."""
        self._users.pop(node_id, None)

    async def close(self) -> None:
        await self._stack.aclose()

    async def create(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Create a topic with these replicas of each partition, and wait until all brokers show it."""
        assignments = [
            creation.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(replicas)
        ]
        topic = creation.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
        )
        answer = await (await self.of(1)).send(creation.CreateTopicsRequest(topics=[topic]), 7)
        assert ErrorCode(answer.topics[0].error_code) == ErrorCode.NONE, answer
        await self.cluster.agree(self.cluster.homes)

    async def coordinator(self, key_type: int, key: str, *, through: int = 1) -> int:
        """The broker that coordinates `key`, by the answer of one broker."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        user = await self.of(through)
        while True:
            [answer] = (await user.send(request, 4)).coordinators
            if answer.error_code == 0:
                return int(answer.node_id)
            assert ErrorCode(answer.error_code) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def key_at(self, key_type: int, node_id: int) -> str:
        """A group or transactional id that this broker coordinates, when it has loaded its partition."""
        await self.coordinator(key_type, "any")
        await self.cluster.agree(self.cluster.homes)
        topic = TRANSACTIONS_TOPIC if key_type == TRANSACTION else OFFSETS_TOPIC
        partitions = self.cluster.broker(1).node.image.topics[topic].partitions
        coordinators = self.cluster.broker(node_id).node.broker.coordinators
        service = coordinators.transactions if key_type == TRANSACTION else coordinators.groups
        place = {key: string_hash_abs(key) % len(partitions) for key in (f"id-{n}" for n in range(1_000))}
        key = next(key for key, partition in place.items() if partitions[partition].leader == node_id)
        await until(lambda: place[key] in service.shards.loaded_partitions)
        return key


@asynccontextmanager
async def running(
    size: int = 3, brokers: int = 0, *, starting: Sequence[int] = (), **overrides: str
) -> AsyncIterator[Users]:
    """A cluster whose nodes, or those of `starting`, run; keys of `overrides` have _ for dots."""
    more = {key.replace("_", "."): value for key, value in overrides.items()}
    cluster = Cluster(size, brokers, overrides={**SPREAD, **more})
    async with cluster.running(*starting):
        users = Users(cluster)
        try:
            yield users
        finally:
            await users.close()


class Spread:
    """A transactional producer whose coordinator and partitions are on different brokers."""

    def __init__(self, users: Users, producer: Producer, topic: str) -> None:
        self.users = users
        self.producer = producer
        self.topic = topic

    @classmethod
    async def of(
        cls, users: Users, transactional_id: str, *, old: bool = False, topic: str = "orders"
    ) -> Spread:
        at = await users.coordinator(TRANSACTION, transactional_id)
        return cls(users, await Producer.of(await users.of(at), transactional_id, old=old), topic)

    async def write(self, partition: int, *values: bytes) -> ErrorCode:
        """Write to the leader of a partition, announced to the coordinator as the generation does it."""
        leader = self.users.cluster.broker(1).node.image.topics[self.topic].partitions[partition].leader
        producer = self.producer
        if producer.old:
            assert await producer.try_to_add(self.topic, partition) == [ErrorCode.NONE]
        coordinator, producer.user = producer.user, await self.users.of(leader)
        try:
            answer = await producer.try_to_write(self.topic, *values, partition=partition)
        finally:
            producer.user = coordinator
        return ErrorCode(answer.error_code)

    async def committed(self, partition: int) -> list[bytes]:
        leader = self.users.cluster.broker(1).node.image.topics[self.topic].partitions[partition].leader
        return await committed_values(await self.users.of(leader), self.topic, partition=partition)


async def asked_for_coordinator(user: User, key_type: int) -> ErrorCode:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
    [answer] = (await user.send(request, 4)).coordinators
    return ErrorCode(answer.error_code)


async def test_there_are_no_coordinators_before_there_are_enough_brokers_for_their_topics() -> None:
    factors = {
        "offsets_topic_replication_factor": "3",
        "transaction_state_log_replication_factor": "3",
        "transaction_state_log_min_isr": "2",
    }
    async with running(1, brokers=2, starting=(1, 2), **factors) as users:
        user = await users.of(2)
        for key_type in (GROUP, TRANSACTION):
            assert await asked_for_coordinator(user, key_type) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not users.cluster.broker(1).node.image.topics

        await users.cluster.start(3)
        topics = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}
        for key_type, topic in topics.items():
            assert await asked_for_coordinator(user, key_type) is ErrorCode.NONE
            partitions = users.cluster.broker(2).node.image.topics[topic].partitions
            assert [sorted(partition.replicas) for partition in partitions.values()] == [[1, 2, 3]] * 6
        assert await user.config(TOPIC_RESOURCE, TRANSACTIONS_TOPIC, "min.insync.replicas") == "2"


async def test_markers_wait_for_a_leader_that_is_away_also_over_a_restart_of_the_coordinator() -> None:
    async with running(1, brokers=3) as users:
        cluster = users.cluster
        await users.create("orders", [[1], [2], [3]])
        transactional_id = await users.key_at(TRANSACTION, 4)
        transaction = await Spread.of(users, transactional_id)
        for partition in (0, 1, 2):
            assert await transaction.write(partition, b"value") == ErrorCode.NONE
        await cluster.broker(2).stop()
        users.forget(2)

        ended = await transaction.producer.try_to_end(commit=True)
        assert ErrorCode(ended.error_code) == ErrorCode.NONE
        await cluster.broker(4).stop()
        users.forget(4)
        await cluster.start(4)
        coordinator = await users.of(4)
        while (state := await described(coordinator, transactional_id)).error_code:
            assert state.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        assert state.transaction_state == "PrepareCommit"

        await cluster.start(2)
        assert await completed(coordinator, transactional_id) == "CompleteCommit"
        for partition in (0, 1, 2):
            assert await transaction.committed(partition) == [b"value"]


async def test_first_writes_wait_for_a_coordinator_that_is_away() -> None:
    async with running(1, brokers=2) as users:
        await users.create("orders", [[1], [2], [3]])
        transactional_id = await users.key_at(TRANSACTION, 3)
        transaction = await Spread.of(users, transactional_id)
        await users.cluster.broker(3).stop()
        users.forget(3)

        for _ in range(2):
            assert await transaction.write(1, b"value") == ErrorCode.NOT_ENOUGH_REPLICAS

        await users.cluster.start(3)
        transaction.producer.user = await users.of(3)
        while (error := await transaction.write(1, b"value")) is not ErrorCode.NONE:
            assert error is ErrorCode.NOT_ENOUGH_REPLICAS
        while (ended := await transaction.producer.try_to_end(commit=True)).error_code:
            assert ended.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        await completed(transaction.producer.user, transactional_id)
        assert await transaction.committed(1) == [b"value"]


async def test_a_coordinator_that_stops_says_so_before_it_hangs_up() -> None:
    async with running(1, brokers=2) as users:
        group = await users.key_at(GROUP, 3)
        user = await users.of(3)
        heartbeat = HeartbeatRequest(group_id=group, generation_id=1, member_id="a")
        stopping = asyncio.ensure_future(users.cluster.broker(3).stop())
        codes: list[ErrorCode] = []
        try:
            while True:
                codes.append(ErrorCode((await user.send(heartbeat, 4)).error_code))
        except ConnectionError:
            users.forget(3)
        await stopping
        assert list(dict.fromkeys(codes)) == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR]


async def test_each_broker_lists_what_it_coordinates() -> None:
    async with running() as users:
        groups = {node_id: await users.key_at(GROUP, node_id) for node_id in (1, 2, 3)}
        ids = {node_id: await users.key_at(TRANSACTION, node_id) for node_id in (1, 2, 3)}
        await users.create("orders", [[1]])
        for node_id in (1, 2, 3):
            await (await users.of(node_id)).commit(groups[node_id], "orders", 1)
            await Producer.of(await users.of(node_id), ids[node_id])
        for node_id in (1, 2, 3):
            user = await users.of(node_id)
            listed = await user.send(ListGroupsRequest(), 4)
            assert (listed.error_code, [each.group_id for each in listed.groups]) == (0, [groups[node_id]])
            transactions = await user.send(
                ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0
            )
            found = [each.transactional_id for each in transactions.transaction_states]
            assert (transactions.error_code, found) == (0, [ids[node_id]])
            elsewhere = groups[node_id % 3 + 1]
            described = await user.send(DescribeGroupsRequest(groups=[elsewhere]), 5)
            assert ErrorCode(described.groups[0].error_code) is ErrorCode.NOT_COORDINATOR


async def test_others_are_served_while_a_partition_of_groups_is_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(1, brokers=1) as users:
        cluster = users.cluster
        await users.create("orders", [[1]])
        await users.coordinator(GROUP, "any")
        partitions = cluster.broker(1).node.image.topics[OFFSETS_TOPIC].partitions
        by_partition = {string_hash_abs(f"id-{n}") % len(partitions): f"id-{n}" for n in range(100)}
        group, other = [by_partition[p.partition_id] for p in partitions.values() if p.leader == 2][:2]
        await (await users.of(2)).commit(group, "orders", 7)
        await cluster.broker(2).stop()
        users.forget(2)

        free = asyncio.Event()
        run = ColdReads.run

        async def held(self: ColdReads, log: Any, read: Any) -> Any:
            await free.wait()
            return await run(self, log, read)

        monkeypatch.setattr(ColdReads, "run", held)
        await cluster.start(2)
        for node_id in (1, 2):
            assert await users.coordinator(GROUP, group, through=node_id) == 2
        user = await users.of(2)
        assert await user.try_to_commit(other, "orders", 1) is ErrorCode.NONE
        assert await user.try_to_commit(group, "orders", 8) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        heartbeat = HeartbeatRequest(group_id=group, generation_id=1, member_id="a")
        assert (await user.send(heartbeat, 4)).error_code == 0

        free.set()
        while (error := await user.try_to_commit(group, "orders", 8)) is not ErrorCode.NONE:
            assert error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await user.committed(group) == {("orders", 0): 8}


async def test_any_broker_says_who_coordinates() -> None:
    async with running() as users:
        for key_type in (GROUP, TRANSACTION):
            for number in range(6):
                found = {
                    await users.coordinator(key_type, f"id-{number}", through=node_id)
                    for node_id in (1, 2, 3)
                }
                assert len(found) == 1
            topic = TRANSACTIONS_TOPIC if key_type == TRANSACTION else OFFSETS_TOPIC
            leaders = [p.leader for p in users.cluster.broker(1).node.image.topics[topic].partitions.values()]
            assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


async def test_a_transaction_ends_in_the_partitions_of_all_brokers() -> None:
    async with running() as users:
        await users.create("orders", [[1], [2], [3]])
        for old in (False, True):
            for coordinator in (1, 2, 3):
                transactional_id = await users.key_at(TRANSACTION, coordinator)
                transaction = await Spread.of(users, transactional_id, old=old)
                for commit in (True, False):
                    for partition in (0, 1, 2):
                        value = f"{old}-{coordinator}-{commit}".encode()
                        assert await transaction.write(partition, value) == ErrorCode.NONE
                    await transaction.producer.end(commit=commit)
        expected = [
            f"{old}-{coordinator}-True".encode() for old in (False, True) for coordinator in (1, 2, 3)
        ]
        for partition in (0, 1, 2):
            assert await transaction.committed(partition) == expected


async def test_a_write_that_was_not_announced_is_refused_by_the_coordinator_on_another_broker() -> None:
    async with running() as users:
        await users.create("orders", [[1], [2], [3]])
        transaction = await Spread.of(users, await users.key_at(TRANSACTION, 1), old=True)
        producer = transaction.producer
        producer.user, coordinator = await users.of(2), producer.user
        for version, error in ((10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)):
            answer = await producer.try_to_write("orders", b"no", partition=1, version=version)
            assert ErrorCode(answer.error_code) == error
        producer.user = coordinator
        assert await transaction.write(1, b"yes") == ErrorCode.NONE
        await producer.end()
        assert await transaction.committed(1) == [b"yes"]


async def test_positions_are_committed_with_the_transaction_of_a_coordinator_elsewhere() -> None:
    async with running() as users:
        await users.create("orders", [[1], [2], [3]])
        group = await users.key_at(GROUP, 2)
        for old in (False, True):
            transaction = await Spread.of(users, await users.key_at(TRANSACTION, 3), old=old)
            producer, coordinator = transaction.producer, transaction.producer.user
            for commit, position, expected in ((True, 5 + old, 5 + old), (False, 9, 5 + old)):
                if old:
                    adding = AddOffsetsToTxnRequest(
                        transactional_id=producer.transactional_id,
                        producer_id=producer.id,
                        producer_epoch=producer.epoch,
                        group_id=group,
                    )
                    assert (await coordinator.send(adding, 3)).error_code == 0
                producer.user = await users.of(2)
                assert await producer.try_to_commit(group, "orders", position) == ErrorCode.NONE
                producer.user = coordinator
                await producer.end(commit=commit)
                assert await (await users.of(2)).committed(group) == {("orders", 0): expected}
