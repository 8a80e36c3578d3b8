"""Share groups of one node: how fast they go through a topic, how soon a record is delivered, what they cost
while nothing comes.

Consumers are played over bare sockets with our own codec, as the clients of KIP-932 speak: each fetch
acknowledges what the one before has brought, by explicit ranges, and asks for up to 500 records in whole
batches. Records are not looked into, so that a consumer costs little beside the broker; `client` is the
processor time of all of them, as a part of the time that the row took. Every record has to be delivered once.
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from bench import pinger, wire
from bench.pinger import no_pauses, quantile
from bench.process import cpu_seconds, resident_megabytes
from bench.systems import SYSTEMS
from pykafka_broker.client.blocking import ResponseBuffer
from pykafka_broker.client.core.share_group import Acknowledgement, Membership
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from pykafka_broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.apache.nodes import Software
from pykafka_broker.testing.processes import BrokerProcess

TOPIC = "bench-shared"
PARTITIONS = 4
RECORD_BYTES = 100
#: As a producer with Kafka's defaults fills them at best: 16 KB.
RECORDS_OF_A_BATCH = 150
#: Produce requests on their way together while a topic is filled.
IN_FLIGHT = 16
#: Kafka's defaults of a share consumer.
MAX_RECORDS, MAX_WAIT_MS, MAX_BYTES = 500, 500, 50 * 1024 * 1024
VERSION, HEARTBEAT_VERSION = 2, 1
GROUP = 32
FROM_THE_START = {"share.auto.offset.reset": "earliest"}
PATIENCE_S = 60.0
#: Longer than the least time between two assignments of a group.
ASSIGNMENT_S = 1.2
#: Records per second of the row that looks at single ones.
RATE = 500
IDLE_GROUPS, IDLE_WINDOW_S, SETTLE_S = 1_000, 10.0, 3.0
#: As brokers tell the members of share groups by default.
HEARTBEAT_S = 5.0
#: A wait that does not end within the row.
LONG_WAIT_MS = 600_000
NOT_YET = {14, 15, 16}


@contextlib.contextmanager
def broker(software: Software) -> Iterator[BrokerProcess]:
    """One node, started."""
    with contextlib.closing(SYSTEMS[software]()) as running:
        running.start()
        yield running


def create(address: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False, "log_level": 0})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(PATIENCE_S)


def fill(address: str, topic: str, records: int) -> int:
    """Write so many records or a few more, over all partitions; how many."""
    now_ms = int(time.time() * 1_000)
    batch = build_batch([(now_ms, None, bytes(RECORD_BYTES), [])] * RECORDS_OF_A_BATCH)
    data = [PartitionProduceData(index=index, records=batch) for index in range(PARTITIONS)]

    def request(*partitions: PartitionProduceData) -> bytes:
        topics = [TopicProduceData(name=topic, partition_data=list(partitions))]
        asked = ProduceRequest(acks=pinger.ACKS_ALL, timeout_ms=pinger.TIMEOUT_MS, topic_data=topics)
        return wire.frame(asked, pinger.VERSION)

    for each in data:
        pinger.connect(address, topic, request(each)).close()
    at_once = RECORDS_OF_A_BATCH * PARTITIONS
    turns = -(-records // at_once // IN_FLIGHT)
    frames, receive = request(*data) * IN_FLIGHT, ResponseBuffer().receive
    with wire.connect(address) as connection:
        for _ in range(turns):
            connection.sendall(frames)
            pinger.check(receive(connection, IN_FLIGHT), topic)
    return (turns * IN_FLIGHT + 1) * at_once


def configure(address: str, groups: Iterable[str], settings: Mapping[str, str]) -> None:
    """Give groups settings of their own."""
    configs = [
        AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings.items()
    ]
    resources = [
        AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs) for group in groups
    ]
    with wire.connect(address) as connection:
        request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
        answer = wire.call(connection, request, 1)
    assert not any(response.error_code for response in answer.responses), answer


# ---- consumers ----


class Range(NamedTuple):
    """Records that a consumer has acquired."""

    partition: int
    first_offset: int
    last_offset: int

    @property
    def records(self) -> int:
        return self.last_offset - self.first_offset + 1


class Consumer:
    """One member of a share group, which fetches and acknowledges in turns. Its heartbeats have a connection
    of their own, as a fetch waits.
    """

    def __init__(self, address: str, group: str, name: str, topic: str) -> None:
        self.connection = wire.connect(address)
        self.heart = wire.connect(address)
        self.max_wait_ms = MAX_WAIT_MS
        #: What the last fetch has brought, which the next one acknowledges.
        self.acquired: list[Range] = []
        #: Records whose acknowledgement was taken.
        self.done = 0
        self._membership = Membership(group, name, [topic])
        self._epoch = 0
        self._said = 0
        self._is_beating = False

    @property
    def group(self) -> str:
        return self._membership.group

    @property
    def member_epoch(self) -> int:
        return self._membership.epoch

    @property
    def partitions(self) -> list[int]:
        return sorted(partition for _, partition in self._membership.assigned)

    def beat(self) -> None:
        """Send a heartbeat, which at first joins, and take the answer."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = wire.call(self.heart, self._membership.heartbeat(), HEARTBEAT_VERSION)
            if answer.error_code not in NOT_YET:
                self._membership.answered(answer)
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)

    def send_beat(self) -> None:
        """Send a heartbeat, if the last one is answered; `beaten` takes the answer."""
        if self._is_beating:
            return
        self._is_beating = True
        self.heart.sendall(wire.frame(self._membership.heartbeat(), HEARTBEAT_VERSION))

    def beaten(self, received: memoryview) -> None:
        self._is_beating = False
        self._membership.answered(wire.answer(ShareGroupHeartbeatRequest, HEARTBEAT_VERSION, received))

    def leave(self) -> None:
        """Be a member no longer, and close the connections."""
        if self._is_beating:
            self.beaten(ResponseBuffer().receive(self.heart))
        self._membership.leave()
        self.beat()
        self.close()

    def close(self) -> None:
        self.connection.close()
        self.heart.close()

    def fetch(self) -> None:
        """Send the next fetch, with what there is to acknowledge."""
        said: dict[int, list[AcknowledgementBatch]] = {}
        if not self._epoch:
            said = {partition: [] for partition in self.partitions}
        for partition, first, last in self.acquired:
            accepted = AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[int(Acknowledgement.ACCEPT)]
            )
            said.setdefault(partition, []).append(accepted)
        self._said = sum(each.records for each in self.acquired)
        topics = []
        if said:
            [topic_id] = {topic_id for topic_id, _ in self._membership.assigned}
            partitions = [
                FetchPartition(partition_index=partition, acknowledgement_batches=batches)
                for partition, batches in said.items()
            ]
            topics.append(FetchTopic(topic_id=topic_id, partitions=partitions))
        request = ShareFetchRequest(
            group_id=self._membership.group,
            member_id=self._membership.member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            max_records=MAX_RECORDS,
            batch_size=MAX_RECORDS,
            topics=topics,
            forgotten_topics_data=[],
        )
        self.connection.sendall(wire.frame(request, VERSION))

    def fetched(self, received: memoryview) -> None:
        """Take the answer of a fetch."""
        answer = wire.answer(ShareFetchRequest, VERSION, received)
        assert not answer.error_code, answer
        self._epoch += 1
        self.done += self._said
        self.acquired = []
        for topic in answer.responses:
            for partition in topic.partitions:
                assert not partition.error_code, partition.error_message
                assert not partition.acknowledge_error_code, partition.acknowledge_error_message
                for each in partition.acquired_records:
                    assert each.delivery_count == 1, each
                    self.acquired.append(
                        Range(partition.partition_index, each.first_offset, each.last_offset)
                    )


@contextlib.contextmanager
def consumers(address: str, groups: Sequence[str], count: int, topic: str) -> Iterator[list[Consumer]]:
    """So many members of each group, in which nothing moves any more; each has partitions to read."""
    ready(address, groups[0])
    with contextlib.ExitStack() as stack:
        members = []
        for group in groups:
            for number in range(count):
                members.append(Consumer(address, group, f"member-{number}", topic))
                stack.callback(members[-1].close)
        for member in members:
            member.beat()
        while not settled(members):
            time.sleep(ASSIGNMENT_S)
            for member in members:
                member.beat()
        yield members


def settled(members: Sequence[Consumer]) -> bool:
    """Whether all members of each group have the same epoch, and partitions."""
    epochs = {(member.group, member.member_epoch) for member in members}
    groups = {member.group for member in members}
    return len(epochs) == len(groups) and all(member.partitions for member in members)


def ready(address: str, group: str) -> None:
    """Return when the coordinator of groups is there."""
    with wire.connect(address) as connection:
        request = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
        while wire.call(connection, request, 4).coordinators[0].error_code:
            time.sleep(0.02)


@contextlib.contextmanager
def polled(connections: Iterable[socket.socket]) -> Iterator[select.epoll]:
    """Tells which of these have something to be received."""
    with select.epoll() as poll:
        for connection in connections:
            poll.register(connection.fileno(), select.EPOLLIN)
        yield poll


# ---- through a topic ----


class Passed(NamedTuple):
    """What a group took to go through a topic."""

    per_s: float
    #: Records for each second of the broker's processor time.
    per_core: float
    #: The processor time of all consumers, as a part of the time.
    client: float


def share_throughput(software: Software, scale: float) -> dict[str, float]:
    """Half a million records of 100 B in batches of 150, through a group of 1, of 10 and of 100 consumers;
    after the same by an unmeasured group of ten, for compilers.
    """
    with broker(software) as running:
        create(running.address, TOPIC, PARTITIONS)
        total = fill(running.address, TOPIC, max(1_000, int(500_000 * scale)))
        passed(running, 10, total, "warm-up")
        figures: dict[str, float] = {}
        for count in (1, 10, 100):
            found = passed(running, count, total, f"of-{count}")
            figures[f"per_s_{count}"] = found.per_s
            figures[f"per_core_{count}"] = found.per_core
            figures[f"client_{count}"] = 100 * found.client
        return figures


def passed(running: BrokerProcess, count: int, total: int, group: str) -> Passed:
    """A new group of so many consumers acknowledges the whole topic."""
    configure(running.address, [group], FROM_THE_START)
    with consumers(running.address, [group], count, TOPIC) as members, no_pauses():
        by_number = {member.connection.fileno(): member for member in members}
        receive = ResponseBuffer().receive
        with polled(member.connection for member in members) as poll:
            used, client = cpu_seconds(running.pid), time.process_time()
            begun = moved = time.perf_counter()
            for member in members:
                member.fetch()
            done = 0
            while done < total:
                for number, _ in poll.poll(PATIENCE_S):
                    member = by_number[number]
                    before = member.done
                    member.fetched(receive(member.connection))
                    if member.done > before:
                        done += member.done - before
                        moved = time.perf_counter()
                    member.fetch()
                assert time.perf_counter() < moved + PATIENCE_S, f"{done} of {total} are acknowledged"
            seconds = time.perf_counter() - begun
            used, client = cpu_seconds(running.pid) - used, time.process_time() - client
    assert done == total, f"{done} records were acknowledged, and there are {total}"
    return Passed(total / seconds, total / used, client / seconds)


# ---- single records ----


def share_delivery(software: Software, scale: float) -> dict[str, float]:
    """Five hundred records a second, one in each request, to four partitions in turn, while ten consumers
    wait: from the moment at which a record was to be sent until a consumer has it.
    """
    with broker(software) as running:
        create(running.address, TOPIC, PARTITIONS)
        configure(running.address, ["of-10"], FROM_THE_START)
        with consumers(running.address, ["of-10"], 10, TOPIC) as members, no_pauses():
            took = deliveries(running.address, members, max(1_000, int(10_000 * scale)))
    # As many before those that count, for compilers.
    counted = sorted(took[len(took) // 2 :])
    return {"p50_ms": quantile(counted, 0.5) * 1e3, "p99_ms": quantile(counted, 0.99) * 1e3}


def deliveries(address: str, members: Sequence[Consumer], count: int) -> list[float]:
    """The seconds that each of so many records took, in the order in which they were to be sent."""
    requests = [pinger.produce_request(TOPIC, index, RECORD_BYTES) for index in range(PARTITIONS)]
    producer = pinger.connect(address, TOPIC, requests[0])
    for request in requests[1:]:
        pinger.connect(address, TOPIC, request).close()
    by_number = {member.connection.fileno(): member for member in members}
    receive = ResponseBuffer().receive
    took = [0.0] * count
    #: The one record with which each partition began is delivered as well.
    sent = delivered = 0
    with producer, polled((producer, *(member.connection for member in members))) as poll:
        for member in members:
            member.fetch()
        begun = time.perf_counter() + 1.0
        while delivered < count + PARTITIONS:
            due = begun + sent / RATE
            if sent < count and time.perf_counter() >= due:
                producer.sendall(requests[sent % PARTITIONS])
                sent += 1
                continue
            patience = max(0.0, due - time.perf_counter()) if sent < count else PATIENCE_S
            ready_now = poll.poll(patience, maxevents=1)
            assert ready_now or sent < count, f"{delivered} of {count} records were delivered"
            for number, _ in ready_now:
                if number == producer.fileno():
                    producer.recv(1 << 16)  # a record that is refused is not delivered
                    continue
                member = by_number[number]
                member.fetched(receive(member.connection))
                now = time.perf_counter()
                for partition, first, last in member.acquired:
                    for offset in range(first, last + 1):
                        delivered += 1
                        if offset:
                            place = (offset - 1) * PARTITIONS + partition
                            took[place] = now - (begun + place / RATE)
                member.fetch()
    return took


# ---- idling ----


def share_idle(software: Software, scale: float) -> dict[str, float]:
    """A thousand groups of one consumer each, on one topic, all of which send their heartbeats: while their
    fetches come back every 500 ms, as with Kafka's defaults, and while they wait for longer; then when all
    consumers have gone.
    """
    groups = [f"idle-{number}" for number in range(max(10, int(IDLE_GROUPS * scale)))]
    window_s = max(1.0, IDLE_WINDOW_S * scale)
    with many_files(), broker(software) as running:
        create(running.address, TOPIC, PARTITIONS)
        ready(running.address, groups[0])
        time.sleep(SETTLE_S)
        memory = resident_megabytes(running.pid)
        with consumers(running.address, groups, 1, TOPIC) as members:
            for member in members:
                member.fetch()
            figures = {
                "cpu_fetching": alive(running, members, MAX_WAIT_MS, window_s),
                "cpu": alive(running, members, LONG_WAIT_MS, window_s),
                "memory": resident_megabytes(running.pid),
            }
            for member in members:
                member.leave()
            time.sleep(SETTLE_S)
            used = cpu_seconds(running.pid)
            time.sleep(window_s)
            used = cpu_seconds(running.pid) - used
        figures["kilobytes"] = (figures["memory"] - memory) * 1e3 / len(groups)
        figures["cpu_left"] = 100 * used / window_s
        return figures


def alive(running: BrokerProcess, members: Sequence[Consumer], max_wait_ms: int, window_s: float) -> float:
    """The part of a core that the broker takes while all members, whose fetches are on their way, send
    heartbeats, one after the other, and fetches that wait so long; in percent, over the second of two
    windows.
    """
    by_number = {member.connection.fileno(): member for member in members}
    hearts = {member.heart.fileno(): member for member in members}
    receive = ResponseBuffer().receive
    used = 0.0
    with (
        polled(each for member in members for each in (member.connection, member.heart)) as poll,
        no_pauses(),
    ):
        begun, beats = time.perf_counter(), 0
        middle, end = begun + SETTLE_S, begun + SETTLE_S + window_s
        while (now := time.perf_counter()) < end:
            if not used and now >= middle:
                used = cpu_seconds(running.pid)
            due = begun + beats * HEARTBEAT_S / len(members)
            if due <= now:
                members[beats % len(members)].send_beat()
                beats += 1
            for number, _ in poll.poll(max(0.0, min(due, end) - now)):
                if member := hearts.get(number):
                    member.beaten(receive(member.heart))
                else:
                    member = by_number[number]
                    member.fetched(receive(member.connection))
                    member.max_wait_ms = max_wait_ms
                    member.fetch()
        used = cpu_seconds(running.pid) - used
    return 100 * used / window_s


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """As many open files as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


ShareRow = Callable[[Software, float], dict[str, float]]

#: The rows by their names in the table.
ROWS: dict[str, ShareRow] = {row.__name__: row for row in (share_throughput, share_delivery, share_idle)}
