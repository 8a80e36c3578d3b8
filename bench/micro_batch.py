"""What streaming queries of Spark ask of a broker, without Spark: plans of micro-batches, and fetches that
wait.

The driver of a query asks for topics and ends of partitions before each batch, and while nothing comes, as
often as its polling delay allows. Executors of continuous and real-time queries leave a fetch waiting on each
partition. Requests are those of Kafka's client 3.9, encoded once, over bare sockets.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bench.pinger import connect as connect_producer
from bench.pinger import produce_request
from bench.process import cpu_seconds, resident_megabytes
from pykafka_broker.client import blocking
from pykafka_broker.client.blocking import Client, ResponseBuffer
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.client.offsets import EARLIEST, LATEST, list_offsets
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

READ_COMMITTED = 1
#: How long Spark pauses after it has found nothing new, by default.
POLLING_DELAY_S = 0.01
CLIENT = "micro-batch"
WAIT_MS = 600_000
#: Of all partitions with a fetch that waits, so many get a record.
WOKEN_PARTITIONS = 250


class Cost(NamedTuple):
    """What a request takes."""

    #: The median of its round trips.
    ms: float
    #: Processor time of the broker, for each partition that it is about.
    us_per_partition: float


class Parked(NamedTuple):
    """What fetches that wait take."""

    #: Resident memory of the broker for each, beside that of its connection.
    kilobytes: float
    #: Of a core, while nothing happens.
    cpu_percent: float
    #: From a record to the answer of the fetch that waits for it, among all others.
    wake_ms: float
    #: From a record to the last answer, where all fetches wait for it; and processor time for each.
    wake_all_ms: float
    wake_all_us: float


def frames(topic: str, partitions: int) -> dict[str, bytes]:
    """What a plan asks of a topic, by what it is for."""

    def offsets(timestamp: int, isolation_level: int = 0) -> bytes:
        asked = [
            ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            for partition in range(partitions)
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=topic, partitions=asked)],
        )
        return request_frame(request, 9, client_id=CLIENT)

    return {
        "describe": request_frame(
            DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)]), 0, client_id=CLIENT
        ),
        "metadata": request_frame(
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
            12,
            client_id=CLIENT,
        ),
        "earliest": offsets(EARLIEST),
        "latest": offsets(LATEST),
        "last_stable": offsets(LATEST, READ_COMMITTED),
        "by_time": offsets(int(time.time() * 1000) - 3_600_000),
        "by_time_in_vain": offsets(int(time.time() * 1000) + 3_600_000),
    }


def fill(address: str, topic: str, partitions: int) -> None:
    """A record in each partition."""
    for partition in range(partitions):
        connect_producer(address, topic, produce_request(topic, partition, 100)).close()


def plans(address: str, pid: int, topic: str, partitions: int, rounds: int) -> dict[str, Cost]:
    """What each request of a plan takes, one after the other."""
    found = {}
    responses = ResponseBuffer(1 << 20)
    with blocking.connect(parse_address(address)) as connection:
        for name, frame in frames(topic, partitions).items():
            connection.sendall(frame)
            responses.receive(connection)
            took, before = [], cpu_seconds(pid)
            for _ in range(rounds):
                begun = time.perf_counter()
                connection.sendall(frame)
                responses.receive(connection)
                took.append(time.perf_counter() - begun)
            used = cpu_seconds(pid) - before
            found[name] = Cost(statistics.median(took) * 1_000, used / rounds / partitions * 1_000_000)
    return found


class Idle(NamedTuple):
    """What queries take that find nothing new."""

    plans_per_s: float
    #: Of a core of the broker.
    cpu_percent: float


def idle_queries(address: str, pid: int, topic: str, partitions: int, queries: int, seconds: float) -> Idle:
    """Queries that find nothing new, each on a connection of its own and pausing as Spark does."""
    asked = frames(topic, partitions)
    cluster = request_frame(
        DescribeClusterRequest(include_cluster_authorized_operations=False), 1, client_id=CLIENT
    )
    rounds = [cluster, asked["describe"], asked["metadata"], asked["latest"]]
    responses = ResponseBuffer(1 << 20)
    due: list[tuple[float, socket.socket]] = []
    with many(address, queries) as connections, selectors.DefaultSelector() as selector:
        place = dict.fromkeys(connections, 0)
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
            connection.sendall(rounds[0])
        done, before, begun = 0, cpu_seconds(pid), time.perf_counter()
        while (now := time.perf_counter()) < begun + seconds:
            while due and due[0][0] <= now:
                _, connection = due.pop(0)
                connection.sendall(rounds[0])
            for key, _ in selector.select(POLLING_DELAY_S / 10):
                connection = key.data
                responses.receive(connection)
                place[connection] = (place[connection] + 1) % len(rounds)
                if place[connection]:
                    connection.sendall(rounds[place[connection]])
                else:
                    done += 1
                    due.append((time.perf_counter() + POLLING_DELAY_S, connection))
        took, used = time.perf_counter() - begun, cpu_seconds(pid) - before
    return Idle(done / took, used / took * 100)


def parked(address: str, pid: int, topic: str, partitions: int, fetches: int, seconds: float) -> Parked:
    """Fetches that wait for records, each on a connection of its own, spread over the partitions."""
    with many(address, fetches) as connections:
        responses = ResponseBuffer(1 << 20)
        for connection in connections:
            connection.sendall(cluster_frame())
            responses.receive(connection)
        connected_mb = resident_megabytes(pid)
        ends = ends_of(address, topic, partitions)
        for number, connection in enumerate(connections):
            partition = number % partitions
            connection.sendall(fetch_frame(topic, partition, ends[partition]))
        settle(address)
        kilobytes = (resident_megabytes(pid) - connected_mb) * 1_000 / fetches
        before = cpu_seconds(pid)
        time.sleep(seconds)
        cpu_percent = (cpu_seconds(pid) - before) / seconds * 100

        # One partition after the other gets a record; then all whose fetches were answered wait for one.
        chosen = range(min(WOKEN_PARTITIONS, partitions - 1))
        wakes = [
            woken(address, topic, partition, connections[partition::partitions], responses).first_ms
            for partition in chosen
        ]
        everyone = [connection for partition in chosen for connection in connections[partition::partitions]]
        shared = fetch_frame(topic, 0, ends_of(address, topic, partitions)[0])
        for connection in everyone:
            connection.sendall(shared)
        settle(address)
        before = cpu_seconds(pid)
        all_ms = woken(address, topic, 0, everyone, responses).last_ms
        used = cpu_seconds(pid) - before
        return Parked(
            kilobytes, cpu_percent, statistics.median(wakes), all_ms, used / len(everyone) * 1_000_000
        )


class Woken(NamedTuple):
    """From a record to the first and to the last answer of those who wait for it."""

    first_ms: float
    last_ms: float


def woken(
    address: str, topic: str, partition: int, waiting: Sequence[socket.socket], responses: ResponseBuffer
) -> Woken:
    """Write a record, and take the answers of those who wait for it."""
    request = produce_request(topic, partition, 100)
    with blocking.connect(parse_address(address)) as producer, selectors.DefaultSelector() as selector:
        for connection in waiting:
            selector.register(connection, selectors.EVENT_READ, connection)
        begun, first = time.perf_counter(), 0.0
        producer.sendall(request)
        left = len(waiting)
        while left:
            for key, _ in selector.select():
                connection = key.data
                responses.receive(connection)
                first = first or time.perf_counter() - begun
                selector.unregister(connection)
                left -= 1
        return Woken(first * 1_000, (time.perf_counter() - begun) * 1_000)


def cluster_frame() -> bytes:
    """What a plan asks first: which brokers there are."""
    return request_frame(
        DescribeClusterRequest(include_cluster_authorized_operations=False), 1, client_id=CLIENT
    )


def fetch_frame(topic: str, partition: int, offset: int) -> bytes:
    """A fetch that waits for a record at an offset."""
    request = FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
                ],
            )
        ],
    )
    return request_frame(request, 12, client_id=CLIENT)


def ends_of(address: str, topic: str, partitions: int) -> dict[int, int]:
    """The ends of all partitions."""
    with Client(address) as client:
        found = list_offsets(client, {(topic, partition): LATEST for partition in range(partitions)})
    return {partition: offset for (_, partition), offset in found.items()}


def settle(address: str) -> None:
    """Return when the broker has taken what was sent before: it answers a new connection in its turn."""
    frame, responses = (
        request_frame(
            DescribeClusterRequest(include_cluster_authorized_operations=False), 1, client_id=CLIENT
        ),
        ResponseBuffer(),
    )
    for _ in range(20):
        with blocking.connect(parse_address(address)) as connection:
            connection.sendall(frame)
            responses.receive(connection)
        time.sleep(0.1)


@contextmanager
def many(address: str, count: int) -> Iterator[list[socket.socket]]:
    """So many connections."""
    connections = [blocking.connect(parse_address(address)) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()
