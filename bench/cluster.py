"""Three nodes, each broker and controller, with Kafka's defaults: what a failure costs those who write.

Each partition of a topic has a replica on every node, and another leader; `min.insync.replicas` is 2. A
writer per node asks for acks=all over a bare connection, again and again: those that do not lead refuse, and
the one that leads says when the record is on all replicas in sync. A gap is the time without such an answer.
The writers are not a client that looks for the leader in its own time: what is measured is the cluster. A row
of its own says what a client sees (`stock_producer.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import load, pinger
from bench.process import cpu_seconds, resident_megabytes, touch_memory
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.processes import BrokerError

NODES = (1, 2, 3)
#: As kafka-server-start.sh starts a broker.
JVM_OPTIONS = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC")
#: The nodes of tests end sessions early; these are Kafka's own values.
DEFAULTS = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}
LEDGER = "ledger"
PATIENCE_S = 90.0
#: Three JVMs start at once, on a machine that may do other things.
START_TIMEOUT_S = 180.0
#: How long a writer rests between two records: the resolution of a gap.
REST_S = 0.005
#: So long the cluster is left alone before a fault, and after a move.
SETTLE_S = 3.0
GB, MB = 1_000_000_000, 1_000_000
RECORD_BYTES = 1_000


# -- the cluster -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster(software: Software) -> Iterator[Nodes]:
    """Three combined nodes of one kind, all of which serve."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        nodes = Nodes(
            Path(folder),
            dict.fromkeys(NODES, software),
            dynamic=True,
            roles="broker,controller",
            properties=DEFAULTS,
        )
        for node in nodes:
            node.jvm_options = JVM_OPTIONS
            node.start_timeout_s = START_TIMEOUT_S
        with nodes:
            create(nodes, LEDGER)
            yield nodes


def ask(nodes: Nodes, request: object, version: int) -> Any:
    """The answer of any node that serves."""
    for node in nodes:
        if node.is_running:
            try:
                with contextlib.closing(BlockingConnection(parse_address(node.address))) as connection:
                    return connection.send(request, version)
            except (OSError, ProtocolError):
                continue
    raise BrokerError("no node answers")


def create(nodes: Nodes, topic: str, leaders: Sequence[int] = NODES) -> None:
    """A topic with a partition for each of these nodes to lead, and replicas on all of them."""
    create_all(nodes, {topic: leaders})


def create_all(nodes: Nodes, topics: Mapping[str, Sequence[int]]) -> None:
    """As `create` for topics with the leaders of each, by one request."""
    config = CreatableTopicConfig(name="min.insync.replicas", value="2")
    described = [
        CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas_led_by(leader)))
                for index, leader in enumerate(leaders)
            ],
            configs=[config],
        )
        for topic, leaders in topics.items()
    ]
    asked = CreateTopicsRequest(topics=described, timeout_ms=30_000)

    def created() -> bool:
        exists = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        return all(answer.error_code in exists for answer in ask(nodes, asked, 5).topics)

    nodes.comes(created, f"the topics {', '.join(topics)} cannot be created")
    for topic, leaders in topics.items():
        whole(nodes, topic, leaders)


def replicas_led_by(leader: int) -> tuple[int, ...]:
    """The nodes in an order of which `leader` is preferred."""
    return (leader, *(node_id for node_id in NODES if node_id != leader))


def partition_led_by(leader: int) -> int:
    return NODES.index(leader)


def whole(nodes: Nodes, topic: str, leaders: Sequence[int] = NODES) -> None:
    """Return when all replicas are in sync, and each partition has its preferred leader."""

    def partitions() -> list[tuple[int, int, int]]:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        [found] = ask(nodes, asked, 9).topics
        return [(p.partition_index, p.leader_id, len(p.isr_nodes)) for p in found.partitions]

    def is_whole() -> bool:
        found = partitions()
        if len(found) < len(leaders) or any(in_sync < len(NODES) for _, _, in_sync in found):
            return False
        if all(leader == leaders[index] for index, leader, _ in found):
            return True
        elect_preferred(nodes, topic, *range(len(leaders)))
        return False

    nodes.comes(is_whole, lambda: f"the topic is not whole: {partitions()}")


def elect_preferred(nodes: Nodes, topic: str, *partitions: int) -> None:
    """Bring preferred leaders back."""
    chosen = TopicPartitions(topic=topic, partitions=list(partitions or range(len(NODES))))
    ask(nodes, ElectLeadersRequest(election_type=0, topic_partitions=[chosen], timeout_ms=30_000), 2)


# -- writers ---------------------------------------------------------------------------------------------


@dataclass
class Writers:
    """A writer at each node; `acknowledged` are the moments of answers, with those of their requests."""

    nodes: Nodes
    partition: int
    acknowledged: list[tuple[float, float]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Writers:
        request = pinger.produce_request(LEDGER, self.partition, 100)
        self.tasks += [asyncio.create_task(self._write(node, request)) for node in self.nodes]
        await self.another(time.perf_counter())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _write(self, node: Node, request: bytes) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            except OSError:
                await asyncio.sleep(REST_S)
                continue
            try:
                while True:
                    sent = time.perf_counter()
                    writer.write(request)
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    answer = size.to_bytes(4, "big") + await reader.readexactly(size)
                    if pinger.error_code(memoryview(answer), LEDGER) == 0:
                        self.acknowledged.append((sent, time.perf_counter()))
                    await asyncio.sleep(REST_S)
            except (OSError, EOFError):
                await asyncio.sleep(REST_S)
            finally:
                writer.close()

    async def another(self, since: float) -> float:
        """The moment at which a record is acknowledged that was sent after `since`."""
        deadline = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < deadline:
            for sent, answered in reversed(self.acknowledged):
                if answered < since:
                    break
                if sent > since:
                    return answered
            await asyncio.sleep(REST_S)
        raise BrokerError(f"no record is acknowledged within {PATIENCE_S} s")

    def longest_gap(self, since: float) -> float:
        """The longest time without an answer from `since` on."""
        moments = sorted(answered for _, answered in self.acknowledged)
        return longest_gap([moment for moment in moments if moment >= since], since)


def longest_gap(moments: Sequence[float], since: float) -> float:
    """The longest time between two of the sorted `moments` that follow each other, or up to the first."""
    return max((late - early for early, late in zip([since, *moments], moments, strict=False)), default=0.0)


# -- gaps ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cast:
    """Who is what in one fault: `leader` is that of the partition that is written to."""

    leader: int
    follower: int
    controller: int


def cast(controller: int) -> Cast:
    leader, follower = (node_id for node_id in NODES if node_id != controller)
    return Cast(leader, follower, controller)


def kill(victim: Callable[[Cast], int]) -> Callable[[Nodes], float]:
    """From kill -9 of a node, of which the two others are left, to the next acknowledged record."""

    def measure(nodes: Nodes) -> float:
        roles = cast(settled(nodes))
        node = nodes[victim(roles)]

        async def gap() -> float:
            async with Writers(nodes, partition_led_by(roles.leader)) as writers:
                await asyncio.sleep(1.0)
                assert node.process is not None
                killed = time.perf_counter()
                node.process.kill()
                return await writers.another(killed) - killed

        took = asyncio.run(gap())
        node.kill()
        node.start()
        return took

    return measure


def settled(nodes: Nodes) -> int:
    """The active controller, once everything is whole and has been for a while."""
    whole(nodes, LEDGER)
    time.sleep(SETTLE_S)
    return nodes.leader()


def move(nodes: Nodes) -> float:
    """The longest gap while the leader of a partition changes, as an administrator asks for it."""
    leader = cast(settled(nodes)).leader
    partition = partition_led_by(leader)
    others = replicas_led_by(next(node_id for node_id in NODES if node_id != leader))

    async def gap() -> float:
        async with Writers(nodes, partition) as writers:
            reorder(nodes, partition, others)
            await asyncio.sleep(1.0)
            asked = time.perf_counter()
            await asyncio.to_thread(elect_preferred, nodes, LEDGER, partition)
            await asyncio.sleep(SETTLE_S)
            await writers.another(time.perf_counter())
            return writers.longest_gap(asked)

    took = asyncio.run(gap())
    reorder(nodes, partition, replicas_led_by(leader))
    return took


def reorder(nodes: Nodes, partition: int, replicas: Sequence[int]) -> None:
    """Say which replica is preferred; nothing is copied."""
    changed = ReassignablePartition(partition_index=partition, replicas=list(replicas))
    topic = ReassignableTopic(name=LEDGER, partitions=[changed])
    ask(nodes, AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=30_000), 0)


def rolling_restart(nodes: Nodes) -> float:
    """The longest gap of one partition while each node is stopped and started, one after the other."""
    settled(nodes)

    async def gap() -> float:
        async with Writers(nodes, 0) as writers:
            begun = time.perf_counter()
            for node in nodes:
                await asyncio.to_thread(node.restart)
                await asyncio.to_thread(whole, nodes, LEDGER)
            await writers.another(time.perf_counter())
            return writers.longest_gap(begun)

    return asyncio.run(gap())


def seen_by_a_client(software: Software, _scale: float) -> dict[str, float]:
    """The longest gaps that a librdkafka producer sees: from kill -9 of the leader on, and over a rolling
    restart.
    """
    from bench.stock_producer import StockProducer

    with cluster(software) as nodes:
        leader = cast(settled(nodes)).leader
        addresses = ",".join(node.address for node in nodes)
        with StockProducer(addresses, LEDGER, partition_led_by(leader)) as producer:
            time.sleep(1.0)
            process = nodes[leader].process
            assert process is not None
            killed = time.perf_counter()
            process.kill()
            producer.another(killed)
            after_kill = longest_gap(
                [answered for _, answered in producer.delivered if answered >= killed], killed
            )
            nodes[leader].kill()
            nodes[leader].start()
            settled(nodes)
            begun = time.perf_counter()
            for node in nodes:
                node.restart()
                whole(nodes, LEDGER)
            producer.another(time.perf_counter())
            restart = longest_gap(
                [answered for _, answered in producer.delivered if answered >= begun], begun
            )
        if producer.failed:
            raise BrokerError(f"{len(producer.failed)} records failed: {producer.failed[0]}")
        return {"kill_s": after_kill, "restart_s": restart}


GAPS: dict[str, Callable[[Nodes], float]] = {
    "leader": kill(lambda roles: roles.leader),
    "follower": kill(lambda roles: roles.follower),
    "controller": kill(lambda roles: roles.controller),
    "move": move,
    "restart": rolling_restart,
}


def gap(name: str) -> Callable[[Software, float], dict[str, float]]:
    """One kind of gap, in a cluster of its own."""

    def measure(software: Software, _scale: float) -> dict[str, float]:
        with cluster(software) as nodes:
            return {"seconds": GAPS[name](nodes)}

    return measure


# -- load ------------------------------------------------------------------------------------------------


def produce(software: Software, scale: float) -> dict[str, float]:
    """Records of 1 KB to three partitions from one producer, and after it one record at a time from each of
    sixteen connections.
    """
    records = max(20_000, int(1_000_000 * scale))
    with cluster(software) as nodes:
        create(nodes, "bulk")
        addresses = ",".join(node.address for node in nodes)
        # The same load once before, for compilers and page cache.
        load.run("produce", addresses, "bulk", records // 5, size=RECORD_BYTES)
        touch_memory(nodes[1].folder, 3 * records * RECORD_BYTES)
        before = used_by(nodes)
        result = load.run("produce", addresses, "bulk", records, size=RECORD_BYTES)
        used = used_by(nodes) - before
        leader = NODES[0]
        pings = pinger.many_connections(
            nodes[leader].address, "bulk", max(2_000, int(20_000 * scale)), partitions=1
        )
        return {
            "mb_s": records * RECORD_BYTES / result["seconds"] / MB,
            "cpu": used / (records * RECORD_BYTES / GB),
            "bulk_p99_ms": result["p99_ms"],
            "acks_per_s": pings["per_s"],
            "p99_ms": pings["p99_ms"],
            "memory": sum(resident_megabytes(node.pid) for node in nodes) / len(NODES),
        }


def used_by(nodes: Nodes) -> float:
    """Processor seconds of all nodes together."""
    return sum(cpu_seconds(node.pid) for node in nodes)


def catch_up(software: Software, scale: float) -> dict[str, float]:
    """A follower is killed, misses records of 1 KB, and is started: from its first answer until it is in sync
    everywhere.
    """
    records = max(20_000, int(1_000_000 * scale))
    with cluster(software) as nodes:
        create(nodes, "missed")
        away = nodes[cast(settled(nodes)).follower]
        away.kill()
        addresses = ",".join(node.address for node in nodes if node.is_running)
        load.run("produce", addresses, "missed", records, size=RECORD_BYTES)
        away.start()
        begun = time.perf_counter()
        in_sync(nodes, "missed")
        seconds = time.perf_counter() - begun
        return {"seconds": seconds, "mb_s": records * RECORD_BYTES / seconds / MB}


def in_sync(nodes: Nodes, topic: str) -> None:
    """Return when every replica is in sync."""

    def are_all() -> bool:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        [found] = ask(nodes, asked, 9).topics
        return all(len(partition.isr_nodes) == len(NODES) for partition in found.partitions)

    nodes.comes(are_all, "a follower does not catch up")


ClusterRow = Callable[[Software, float], dict[str, float]]

#: The rows by their names in the table.
ROWS: dict[str, ClusterRow] = {
    "cluster_leader": gap("leader"),
    "cluster_follower": gap("follower"),
    "cluster_controller": gap("controller"),
    "cluster_move": gap("move"),
    "cluster_restart": gap("restart"),
    "cluster_client": seen_by_a_client,
    "cluster_produce": produce,
    "cluster_catch_up": catch_up,
}
