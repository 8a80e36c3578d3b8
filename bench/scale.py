"""`python -m bench.scale`: what each partition, replica, connection and broker costs a cluster of three
nodes, and what a second node on the same host brings.

For each number of partitions a cluster of its own, in which every partition has a replica on all nodes; one
of so many that a killed node leads at least 5,000; and one whose partitions have a single replica, which
tells the cost of a partition from that of a replica. Each part is stored as soon as it is measured.
docs/scale.md shows what is stored as `bench/results/DAY-scale.json`, and the straight lines through it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, get_args

from bench import load, pinger
from bench.process import cpu_seconds, resident_megabytes, touch_memory
from bench.quorum import JVM_OPTIONS
from bench.systems import describe_machine
from pykafka_broker.client.blocking import BlockingConnection, Client
from pykafka_broker.client.core.addresses import Address, parse_address
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.processes import PING

VOTERS = (1, 2, 3)
PARTITIONS_OF_A_TOPIC = 10
#: The node that is killed leads 44 or 55 % of them: what a node led before its restart has gone to two others
#: in unequal parts, as replicas are placed in stripes.
FAILOVER_PARTITIONS = 12_000
#: Partitions of one request: on a slow disk more would be answered too late.
CREATED_AT_ONCE = 200
SETTLE_S, IDLE_WINDOW_S = 10.0, 30.0
PATIENCE_S = 600.0
LOOK_EVERY_S = 0.01
#: What tests shorten stands at Kafka's defaults.
PROPERTIES = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
}
#: The load on a host: as many processes ping, each over its connections, and then one producer writes.
PINGERS, PINGER_CONNECTIONS, PINGS = 2, 8, 20_000
BULK_RECORDS, BULK_RECORD_BYTES = 1_000_000, 1_000
#: Of each number of nodes on a host, in turn.
HOST_ROUNDS = 3
GB, MB = 1_000_000_000, 1_000_000


@contextlib.contextmanager
def cluster(
    software: Software, node_ids: Sequence[int] = VOTERS, properties: Mapping[str, str] = PROPERTIES
) -> Iterator[Nodes]:
    """Combined nodes of one kind, started, each with its folder."""
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
        voters = dict.fromkeys(node_ids, software)
        nodes = Nodes(Path(folder), voters, dynamic=True, roles="broker,controller", properties=properties)
        for node in nodes:
            node.jvm_options = JVM_OPTIONS
        with nodes:
            nodes.leader()
            yield nodes


# -- what a node knows -----------------------------------------------------------------------------------


def metadata_of(node: Node) -> MetadataResponse | None:
    """All topics as a node knows them; None while it does not answer."""
    try:
        with contextlib.closing(BlockingConnection(parse_address(node.address))) as connection:
            answer: MetadataResponse = connection.send(MetadataRequest(topics=None))
    except (OSError, ProtocolError):
        return None
    return answer


def await_all(nodes: Sequence[Node], is_so: Callable[[MetadataResponse], bool]) -> float:
    """Return when all of these nodes know it so, and how many seconds that took."""
    begun = time.perf_counter()
    for node in nodes:
        while (known := metadata_of(node)) is None or not is_so(known):
            if time.perf_counter() - begun > PATIENCE_S:
                raise TimeoutError(f"node {node.node_id} does not come to it:\n{node.log_tail()}")
            time.sleep(LOOK_EVERY_S)
    return time.perf_counter() - begun


def replicated(partitions: int, replicas: int) -> Callable[[MetadataResponse], bool]:
    """Whether there are so many partitions, each with a leader and so many replicas in sync."""

    def is_so(known: MetadataResponse) -> bool:
        found = [partition for topic in known.topics for partition in topic.partitions]
        return len(found) == partitions and all(
            len(partition.isr_nodes) == replicas and partition.leader_id >= 0 for partition in found
        )

    return is_so


def led_by(node_id: int, known: MetadataResponse) -> int:
    """How many partitions this node leads, or no node."""
    return sum(
        partition.leader_id in (node_id, -1) for topic in known.topics for partition in topic.partitions
    )


# -- partitions ------------------------------------------------------------------------------------------


def create(nodes: Nodes, partitions: int, replicas: int) -> None:
    """Topics of ten partitions each, as many as it takes."""
    names = [f"scale-{number}" for number in range(partitions // PARTITIONS_OF_A_TOPIC)]
    described = [
        CreatableTopic(
            name=name,
            num_partitions=PARTITIONS_OF_A_TOPIC,
            replication_factor=replicas,
            assignments=[],
            configs=[],
        )
        for name in names
    ]
    create_topics(nodes, described, at_once=CREATED_AT_ONCE // PARTITIONS_OF_A_TOPIC)


def create_topics(nodes: Nodes, topics: list[CreatableTopic], at_once: int) -> None:
    """Create topics, so many with each request."""
    with Client(addresses_of(nodes), timeout_s=PATIENCE_S) as client:
        for first in range(0, len(topics), at_once):
            request = CreateTopicsRequest(topics=topics[first : first + at_once], timeout_ms=60_000)
            answer: CreateTopicsResponse = client.send(request)
            errors = {ErrorCode(topic.error_code) for topic in answer.topics}
            # A request whose answer was lost is sent again.
            assert errors <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}, errors


def addresses_of(nodes: Nodes) -> str:
    return ",".join(node.address for node in nodes)


def measure_partitions(software: Software, partitions: int, replicas: int) -> dict[str, float]:
    """The figures of a cluster with so many partitions of so many replicas: `create_s` until all are in sync
    after their creation, those of idle nodes, of a start, and of a failover where there is a second replica.
    """
    with cluster(software) as nodes:
        every = list(nodes)
        begun = time.perf_counter()
        create(nodes, partitions, replicas)
        are_in_sync = replicated(partitions, replicas)
        await_all(every, are_in_sync)
        found = {"create_s": time.perf_counter() - begun, **measure_idle(every)}
        found |= measure_start(nodes, are_in_sync)
        return found | (measure_failover(nodes) if replicas > 1 else {})


def measure_failover_alone(software: Software, partitions: int) -> dict[str, float]:
    """The figures of a start and of a failover in a cluster with so many partitions."""
    with cluster(software) as nodes:
        create(nodes, partitions, len(VOTERS))
        are_in_sync = replicated(partitions, len(VOTERS))
        await_all(list(nodes), are_in_sync)
        return measure_start(nodes, are_in_sync) | measure_failover(nodes)


def measure_idle(nodes: Sequence[Node]) -> dict[str, float]:
    """Means of the nodes, with nothing to do: memory, processor time in percent of a core, the bytes of the
    metadata log, what the whole folder takes on the disk, and open files.
    """
    time.sleep(SETTLE_S)
    before, started = [cpu_seconds(node.pid) for node in nodes], time.perf_counter()
    time.sleep(IDLE_WINDOW_S)
    took = time.perf_counter() - started
    used = [cpu_seconds(node.pid) - earlier for node, earlier in zip(nodes, before, strict=True)]
    return {
        "memory_mb": statistics.mean(resident_megabytes(node.pid) for node in nodes),
        "cpu_percent": statistics.mean(used) / took * 100,
        "metadata_kb": statistics.mean(metadata_kb(node) for node in nodes),
        "folder_kb": statistics.mean(allocated_kb(node.data_dir) for node in nodes),
        "descriptors": statistics.mean(len(list(Path(f"/proc/{node.pid}/fd").iterdir())) for node in nodes),
    }


def metadata_kb(node: Node) -> float:
    """The segments of its metadata log. A further broker writes less than a block there."""
    return sum(segment.stat().st_size for segment in node.metadata_folder.glob("*.log")) / 1000


def allocated_kb(folder: Path) -> float:
    """The blocks of all files below a folder."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / 1000


def measure_start(nodes: Nodes, are_in_sync: Callable[[MetadataResponse], bool]) -> dict[str, float]:
    """Stop a node that does not lead the quorum, and start it again: until it answers, and from then on until
    all replicas are in sync.
    """
    leader_id = nodes.leader()
    node = next(node for node in nodes if node.node_id != leader_id)
    node.stop()
    begun = time.perf_counter()
    start_s = node.start()
    await_all(list(nodes), are_in_sync)
    return {"start_s": start_s, "in_sync_s": time.perf_counter() - begun}


def measure_failover(nodes: Nodes) -> dict[str, float]:
    """Kill a node that does not lead the quorum, and look at what another one knows: until no partition is
    led by it, the part of this from the first partition that moves to the last, and how many it led.
    """
    leader_id = nodes.leader()
    killed = next(node for node in nodes if node.node_id != leader_id and leads_its_share(node))
    watched = nodes[leader_id]
    with contextlib.closing(BlockingConnection(parse_address(watched.address))) as connection:
        led = led_by(killed.node_id, connection.send(MetadataRequest(topics=None)))
        killed.kill()
        begun, first = time.perf_counter(), 0.0
        while left := led_by(killed.node_id, connection.send(MetadataRequest(topics=None))):
            now = time.perf_counter()
            if left == led:
                first = now
            if now - begun > PATIENCE_S:
                raise TimeoutError(f"{left} partitions are still led by a killed node")
            time.sleep(LOOK_EVERY_S)
        took = time.perf_counter()
    return {"failover_s": took - begun, "moving_s": took - first, "led": led}


def leads_its_share(node: Node) -> bool:
    known = metadata_of(node)
    return known is not None and led_by(node.node_id, known) > 0


# -- connections and brokers -----------------------------------------------------------------------------


def measure_connections(software: Software, counts: Sequence[int]) -> dict[str, dict[str, float]]:
    """What so many idle connections to one node, each after one request, add to it."""
    found: dict[str, dict[str, float]] = {}
    with cluster(software) as nodes, contextlib.ExitStack() as opened:
        node = nodes[VOTERS[0]]
        address: Address = parse_address(node.address)
        before = measure_idle([node])
        for already, count in itertools.pairwise([0, *sorted(counts)]):
            for _ in range(count - already):
                one = opened.enter_context(socket.create_connection((address.host, address.port), 10))
                one.sendall(PING)
                assert one.recv(4)
            after = measure_idle([node])
            found[str(count)] = {
                "memory_kb": (after["memory_mb"] - before["memory_mb"]) * 1000,
                "cpu_percent": after["cpu_percent"] - before["cpu_percent"],
            }
    return found


def measure_brokers(software: Software, count: int) -> dict[str, float]:
    """What further brokers without partitions cost the nodes that are there, how long one takes to start, and
    how long after a kill -9 clients are told of it.
    """
    with cluster(software) as nodes:
        before = measure_idle(list(nodes))
        first = list(nodes)
        starts = [nodes.add(node_id, software, roles="broker").start() for node_id in range(11, 11 + count)]
        after = measure_idle(first)
        added = [node for node in nodes if node not in first]
        own = measure_idle(added)
        killed = added[-1]
        killed.kill()
        told_s = await_all(
            first, lambda known: killed.node_id not in {each.node_id for each in known.brokers}
        )
    return {
        "brokers": count,
        "memory_mb_each": (after["memory_mb"] - before["memory_mb"]) / count,
        "cpu_percent_each": (after["cpu_percent"] - before["cpu_percent"]) / count,
        "metadata_kb_each": (after["metadata_kb"] - before["metadata_kb"]) / count,
        "start_s": statistics.median(starts),
        "told_s": told_s,
        "own_memory_mb": own["memory_mb"],
        "own_cpu_percent": own["cpu_percent"],
    }


# -- several nodes on one host ---------------------------------------------------------------------------


def measure_host(software: Software, scale: float) -> dict[str, dict[str, float]]:
    """The same load on one node and on two, which lead half of its partitions each: medians of rounds."""
    rounds = [{count: load_host(software, count, scale) for count in (1, 2)} for _ in range(HOST_ROUNDS)]
    return {
        str(count): {key: statistics.median(one[count][key] for one in rounds) for key in figures}
        for count, figures in rounds[0].items()
    }


def load_host(software: Software, count: int, scale: float) -> dict[str, float]:
    """Pings to `count` nodes of this host, then records in bulk, to partitions without replicas."""
    records, pings = int(BULK_RECORDS * scale), int(PINGS * scale)
    node_ids = range(1, count + 1)
    # The leader of what each process pings, and of each partition that is written in bulk.
    leaders = [node_ids[number % count] for number in range(PINGERS)]
    with cluster(software, node_ids, {**PROPERTIES, "min.insync.replicas": "1"}) as nodes:
        described = [led_topic(f"pinged-{number}", [leader]) for number, leader in enumerate(leaders)]
        create_topics(nodes, [*described, led_topic("bulk", leaders)], at_once=PINGERS + 1)
        with ProcessPoolExecutor(PINGERS) as processes:
            pinging = [
                processes.submit(
                    pinger.many_connections,
                    *(nodes[leader].address, f"pinged-{number}", pings // PINGERS),
                    connections=PINGER_CONNECTIONS,
                    partitions=1,
                )
                for number, leader in enumerate(leaders)
            ]
            pinged = [each.result() for each in pinging]
        # The same load once before, for compilers and page cache.
        load.run("produce", addresses_of(nodes), "bulk", records // 5, size=BULK_RECORD_BYTES)
        touch_memory(nodes[1].folder, records * BULK_RECORD_BYTES)
        before = sum(cpu_seconds(node.pid) for node in nodes)
        result = load.run("produce", addresses_of(nodes), "bulk", records, size=BULK_RECORD_BYTES)
        used = sum(cpu_seconds(node.pid) for node in nodes) - before
        return {
            "acks_per_s": sum(each["per_s"] for each in pinged),
            "acks_p99_ms": max(each["p99_ms"] for each in pinged),
            "mb_s": records * BULK_RECORD_BYTES / result["seconds"] / MB,
            "s_per_gb": used / (records * BULK_RECORD_BYTES / GB),
            "memory_mb": sum(resident_megabytes(node.pid) for node in nodes),
        }


def led_topic(name: str, leaders: Sequence[int]) -> CreatableTopic:
    """A topic with a partition for each of these nodes to lead, without other replicas."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[leader])
        for index, leader in enumerate(leaders)
    ]
    return CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
    )


# -- the program -----------------------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=(__doc__ or "").split(": ", 1)[1]
    )
    parser.add_argument("--broker", choices=get_args(Software), default="ours")
    parser.add_argument("--partitions", type=numbers, default="100,1000,3000,10000")
    parser.add_argument(
        "--failover",
        type=numbers,
        default=f"{FAILOVER_PARTITIONS}",
        help="numbers of partitions of which only start and failover are measured",
    )
    parser.add_argument(
        "--one-replica", type=numbers, default="10000", help="numbers of partitions with a single replica"
    )
    parser.add_argument("--connections", type=numbers, default="500,1000,2000")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--host", type=float, default=1.0, help="size of the load on 1 and 2 nodes; 0: none")
    parser.add_argument(
        "--output", type=Path, help="where to keep the JSON; what is not measured stays as it is there"
    )
    chosen = parser.parse_args()
    # Nodes inherit it: Apache Kafka holds files of each partition open.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    report: dict[str, Any] = {}
    if chosen.output and chosen.output.exists():
        report = json.loads(chosen.output.read_text())
    report |= {"machine": describe_machine(), "broker": chosen.broker}

    def keep(part: str, figures: Mapping[str, object]) -> None:
        report.setdefault(part, {}).update(figures)
        print(json.dumps({part: figures}, indent=1), flush=True)
        if chosen.output:
            chosen.output.write_text(json.dumps(report, indent=1) + "\n")

    for part, replicas in (("partitions", len(VOTERS)), ("one_replica", 1)):
        for count in getattr(chosen, part):
            keep(part, {str(count): measure_partitions(chosen.broker, count, replicas)})
    for count in chosen.failover:
        keep("failover", {str(count): measure_failover_alone(chosen.broker, count)})
    if chosen.connections:
        keep("connections", measure_connections(chosen.broker, chosen.connections))
    if chosen.brokers:
        keep("brokers", measure_brokers(chosen.broker, chosen.brokers))
    if chosen.host:
        keep("host", measure_host(chosen.broker, chosen.host))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
