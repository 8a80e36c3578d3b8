"""A fetcher of partitions that broker 1 leads, against a leader that answers as ours does, or as told."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pykafka_broker.apis.fetching.sessions import FetchSessionCache
from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.leading_replica import PartitionPorts
from pykafka_broker.replication.partition import Partition
from pykafka_broker.replication.replica_fetcher import FetcherPorts, FetcherSettings
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.replication.topic_counts import TopicCounts
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import TOPIC_ID, append, values
from tests.support.replicas import FilesAtOnce

LEADER, FOLLOWER = 1, 2
BACKOFF_MS = 1_000


def log_of(number: int, files: MemoryFiles | None = None, **settings: Any) -> PartitionLog:
    identity = LogIdentity(f"/logs/orders-{number}", "orders", number, TOPIC_ID)
    return create_log(Environment(files or MemoryFiles()), identity, LogConfig(**settings))


class Leader:
    """A broker that leads partitions; fetches wait until there is something to answer."""

    def __init__(self, logs: Sequence[PartitionLog]) -> None:
        self.logs = {log.partition: log for log in logs}
        self.requests: list[FetchRequest] = []
        self.answers: list[FetchResponse] = []
        #: Errors to answer about a partition instead.
        self.errors: dict[int, ErrorCode] = {}
        #: Records to send instead.
        self.records: dict[int, bytes] = {}
        #: The error with which each fetch is refused as a whole.
        self.refuses = ErrorCode.NONE
        self.is_closed = False
        self.version = 18
        self._sessions = FetchSessionCache(iter(range(1, 1000)).__next__)
        self._news = asyncio.Event()

    def newest_version(self, request: object) -> int:
        return self.version if isinstance(request, FetchRequest) else 7

    def wake(self) -> None:
        """Look again whether there is something to answer."""
        self._news.set()

    async def close(self) -> None:
        self.is_closed = True

    async def send(self, request: Any, version: int, *, timeout_ms: int) -> Any:
        await asyncio.sleep(0)
        if isinstance(request, ListOffsetsRequest):
            return self._offsets(request)
        assert request.replica_state.replica_id == FOLLOWER and request.replica_state.replica_epoch == 77
        self.requests.append(request)
        if self.refuses is not ErrorCode.NONE:
            return FetchResponse(error_code=self.refuses, responses=[])
        context = self._sessions.begin(request, version, 0, lambda topic_id: "orders")
        if context.error is not ErrorCode.NONE:
            return FetchResponse(error_code=context.error, responses=[])
        error, session_id, listed = self._listed(context)
        if not listed:
            self._news.clear()
            await self._news.wait()
            error, session_id, listed = self._listed(context)
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data for _, data in listed])
        response = FetchResponse(error_code=error, session_id=session_id, responses=[topic] if listed else [])
        self.answers.append(response)
        return response

    def _listed(self, context: Any) -> Any:
        return context.finish([(wanted, self._answer(wanted)) for wanted in context.wanted.values()])

    def _answer(self, wanted: Any) -> PartitionData:
        log = self.logs[wanted.partition]
        state = log.state
        data = PartitionData(
            partition_index=wanted.partition,
            error_code=self.errors.get(wanted.partition, ErrorCode.NONE),
            high_watermark=state.high_watermark,
            log_start_offset=state.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if data.error_code:
            return data
        if wanted.partition in self.records:
            data.records = self.records[wanted.partition]
            return data
        if wanted.last_fetched_epoch >= 0:
            epoch, end = log.reader.end_offset_for_epoch(wanted.last_fetched_epoch)
            if epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
                return data
        try:
            data.records = bytes(log.reader.plan_read(wanted.fetch_offset, 1 << 20, limit="log_end").read())
        except KafkaError as error:
            data.error_code = error.code
        return data

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        [topic] = request.topics
        answers = []
        for asked in topic.partitions:
            state = self.logs[asked.partition_index].state
            offset = state.log_end_offset if asked.timestamp == -1 else state.log_start_offset
            answers.append(
                ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index, error_code=0, offset=offset
                )
            )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=answers)])


class Disks:
    """The disks of the followed logs."""

    def __init__(self) -> None:
        self.deferred_files = FilesAtOnce()
        self.truncated: list[int] = []
        self.refused: list[OSError] = []
        self.is_late = False

    async def checkpoint_truncated(self, log: PartitionLog) -> bool:
        self.truncated.append(log.state.log_end_offset)
        return not self.is_late

    async def flush(self, log: PartitionLog) -> object:
        return log.flusher.flush()

    def is_full(self, log: PartitionLog) -> bool:
        return False

    def write_failed(self, log: PartitionLog, error: OSError) -> None:
        self.refused.append(error)
        if error.errno == errno.EIO:
            log.state.offline = error


class Node:
    """Broker 2, which follows partitions of `orders`."""

    def __init__(self, leader: Leader) -> None:
        self.leader = leader
        self.clock = VirtualClock()
        self.disks = Disks()
        self.refuses: Exception | None = None
        #: Set while connections are to wait.
        self.holds: asyncio.Event | None = None
        self.connections = 0
        self.rate = RateLimit(1 << 62, 11, 1_000)
        ports = FetcherPorts(self.clock, self.disks, self._connect, lambda: 77, self.rate)
        self.fetchers = ReplicaFetchers(ports, FetcherSettings(FOLLOWER, backoff_ms=BACKOFF_MS), 1)

    async def _connect(self, leader_id: int, fetcher_id: int) -> Any:
        assert leader_id == LEADER and fetcher_id in range(3)
        self.connections += 1
        if self.holds is not None:
            await self.holds.wait()
        if self.refuses is not None:
            raise self.refuses
        self.leader.is_closed = False
        return self.leader

    def follow(self, log: PartitionLog, leader_epoch: int = 5, *, in_sync: bool = True) -> Partition:
        unused: Any = None
        ports = PartitionPorts(
            FOLLOWER,
            unused,
            unused,
            self.clock,
            unused,
            lambda broker_id: None,
            RateLimit(1 << 62, 11, 1_000),
        )
        partition = Partition("orders", TOPIC_ID, log.partition, log, ports, TopicCounts())
        self.lead_by(partition, leader_epoch, in_sync=in_sync)
        return partition

    def lead_by(self, partition: Partition, leader_epoch: int, *, in_sync: bool = True) -> None:
        self.fetchers.resign(partition)
        replicas = (LEADER, FOLLOWER)
        isr = replicas if in_sync else (LEADER,)
        partition.become(
            PartitionRegistration(partition.partition, replicas, isr, LEADER, leader_epoch, leader_epoch)
        )
        self.fetchers.follow(partition, LEADER)

    async def until(self, is_true: Any) -> None:
        async with asyncio.timeout(10):
            while not is_true():
                self.leader.wake()
                await asyncio.sleep(0)


@asynccontextmanager
async def following(*led: PartitionLog) -> AsyncIterator[Node]:
    node = Node(Leader(led))
    try:
        yield node
    finally:
        await node.fetchers.stop()


async def test_a_follower_has_the_leaders_records_high_watermark_and_log_start() -> None:
    led, here = log_of(0), log_of(0)
    for number in range(5):
        append(led, b"%d" % number, epoch=5)
    led.trimmer.advance_log_start_offset(2)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: here.state.high_watermark == 5)

        assert here.state.log_start_offset == 2
        assert values(here) == values(led)
        append(led, b"later", epoch=5)
        await node.until(lambda: here.state.high_watermark == 6)
        assert values(here) == values(led)


@pytest.mark.parametrize("in_sync", [False, True])
async def test_a_damaged_replica_is_made_whole_by_its_leader_unless_it_may_be_the_next(in_sync: bool) -> None:
    led, here = log_of(0), log_of(0)
    for number in range(5):
        for log in (led, here):
            append(log, b"%d" % number, epoch=5)
    segment = here.state.active
    batch_bytes = segment.size // 5
    segment.trust.damages = (Damage(2 * batch_bytes, 3 * batch_bytes, first_offset=2, next_offset=3),)
    append(led, b"later", epoch=5)
    async with following(led) as node:
        node.follow(here, in_sync=in_sync)
        await node.until(lambda: here.state.high_watermark == 6)

        assert bool(segment.trust.damages) == in_sync
        if not in_sync:
            assert values(here) == values(led)


async def test_a_high_watermark_that_moves_wakes_the_readers_of_the_follower() -> None:
    led, here = log_of(0), log_of(0)
    append(led, b"a", epoch=5)
    seen: list[int] = []
    here.on_advance.append(lambda state: seen.append(state.high_watermark))
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: 1 in seen)


async def test_idle_partitions_are_in_neither_request_nor_answer() -> None:
    led, here = [log_of(n) for n in range(1000)], [log_of(n) for n in range(1000)]
    async with following(*led) as node:
        for log in here:
            node.follow(log)
        await node.until(lambda: len(node.leader.requests) >= 3)
        append(led[7], b"news", epoch=5)
        await node.until(lambda: values(here[7]) == [b"news"])
        await node.until(lambda: len(node.leader.requests) >= 5)

    def named(request: FetchRequest) -> list[int]:
        return [one.partition for topic in request.topics for one in topic.partitions]

    assert len(named(node.leader.requests[0])) == 1000
    assert {tuple(named(request)) for request in node.leader.requests[1:]} <= {(), (7,)}
    assert all(len(answer.responses) <= 1 for answer in node.leader.answers)
    assert [len(a.responses[0].partitions) for a in node.leader.answers[1:] if a.responses] in ([1], [1, 1])


async def test_the_files_of_all_epochs_that_begin_with_an_answer_are_made_at_once() -> None:
    """They were made one by one, on the event loop."""
    led, here = [log_of(n) for n in range(20)], [log_of(n) for n in range(20)]
    for log in led:
        append(log, b"first", epoch=5)
    async with following(*led) as node:
        for log in here:
            node.follow(log)
        await node.until(lambda: all(log.state.high_watermark == 1 for log in here))
        for log in led:
            append(log, b"second", epoch=5)
        await node.until(lambda: all(log.state.high_watermark == 2 for log in here))
        assert node.disks.deferred_files.made_at_once == [20]
    assert [log.state.epochs.entries for log in here] == [((5, 0),)] * 20
    assert all(log.epoch_file.is_saved for log in here)


async def test_a_log_that_diverged_is_cut_and_that_is_written_down_before_it_grows() -> None:
    led, here = log_of(0), log_of(0)
    for log in (led, here):
        append(log, b"same", epoch=1)
    append(here, b"lost", epoch=2)
    append(here, b"lost too", epoch=2)
    here.state.high_watermark = 1
    append(led, b"kept", epoch=3)
    async with following(led) as node:
        node.disks.is_late = True
        node.follow(here)
        await node.until(lambda: node.disks.truncated)
        await settle()
        assert values(here) == [b"same"]

        node.disks.is_late = False
        await node.clock.pass_time(BACKOFF_MS)
        await node.until(lambda: values(here) == [b"same", b"kept"])
    assert node.disks.truncated == [1, 1]


async def test_a_leader_that_refuses_fetches_as_a_whole_is_asked_again_after_a_pause() -> None:
    """It was asked for everything in a loop, as one whose handler fails."""
    led, here = log_of(0), log_of(0)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: len(node.leader.requests) > 1)
        node.leader.refuses = ErrorCode.UNKNOWN_SERVER_ERROR
        before = len(node.leader.requests)
        node.leader.wake()
        await settle()
        assert len(node.leader.requests) - before <= 2, "one of the session, and one for everything"

        node.leader.refuses = ErrorCode.NONE
        append(led, b"a", epoch=5)
        await node.clock.pass_time(BACKOFF_MS)
        await node.until(lambda: values(here) == [b"a"])


async def test_a_cut_log_does_not_grow_in_the_next_leader_epoch_either_before_that_is_written_down() -> None:
    """After a crash the new records would have been taken for flushed."""
    led, here = log_of(0), log_of(0)
    append(led, b"same", epoch=1)
    append(here, b"same", epoch=1)
    append(here, b"lost", epoch=2)
    append(led, b"kept", epoch=3)
    async with following(led) as node:
        node.disks.is_late = True
        partition = node.follow(here)
        await node.until(lambda: node.disks.truncated)
        node.lead_by(partition, 6)
        await node.until(lambda: len(node.disks.truncated) == 2)
        await settle()
        assert values(here) == [b"same"]

        node.disks.is_late = False
        await node.clock.pass_time(BACKOFF_MS)
        await node.until(lambda: values(here) == [b"same", b"kept"])
    assert node.disks.truncated == [1, 1, 1]
    assert here.state.epochs.entries == led.state.epochs.entries


async def test_a_truncation_that_the_disk_refuses_for_a_while_is_tried_again() -> None:
    """Before, the replica was not followed any more until the next leader epoch."""
    files = MemoryFiles()
    led, here = log_of(0), log_of(0, files, segment_bytes=150)
    for log in (led, here):
        append(log, b"same", epoch=1)
    for number in range(4):
        append(here, b"lost %d" % number, epoch=2)
    append(led, b"kept", epoch=3)
    files.fail("remove", errno.EMFILE, path=".log", skip=1)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: node.disks.refused)
        await settle()
        assert 1 < here.state.log_end_offset < 5, "a part of it is gone"

        await node.clock.pass_time(BACKOFF_MS)
        await node.until(lambda: values(here) == [b"same", b"kept"])
    assert node.disks.truncated[-1] == 1


async def test_a_truncation_that_a_broken_disk_refuses_is_not_tried_again() -> None:
    files = MemoryFiles()
    led, here = log_of(0), log_of(0, files)
    append(led, b"kept", epoch=3)
    append(here, b"lost", epoch=2)
    files.fail("truncate", errno.EIO)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: node.disks.refused)
        await node.clock.pass_time(10 * BACKOFF_MS)
        await settle()
    assert (len(node.disks.refused), values(here)) == (1, [b"lost"])


async def test_a_follower_before_the_leaders_start_begins_anew_there() -> None:
    led, here = log_of(0), log_of(0)
    append(here, b"old", epoch=5)
    for number in range(9):
        append(led, b"%d" % number, epoch=5)
    led.trimmer.reset_to(40)
    append(led, b"new", epoch=5)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: values(here) == [b"new"])
    assert (here.state.log_start_offset, here.state.log_end_offset) == (40, 41)


async def test_damaged_records_hold_only_their_partition_back() -> None:
    led, here = [log_of(0), log_of(1)], [log_of(0), log_of(1)]
    for log in led:
        append(log, b"value", epoch=5)
    async with following(*led) as node:
        good = bytes(led[0].reader.plan_read(0, 1000, limit="log_end").read())
        node.leader.records[0] = good[:-1] + bytes([good[-1] ^ 1])
        for log in here:
            node.follow(log)
        await node.until(lambda: values(here[1]) == [b"value"])
        assert values(here[0]) == []

        del node.leader.records[0]
        await node.clock.pass_time(BACKOFF_MS)
        await node.until(lambda: values(here[0]) == [b"value"])


async def test_a_fenced_partition_waits_for_the_next_epoch_and_others_go_on() -> None:
    led, here = [log_of(0), log_of(1)], [log_of(0), log_of(1)]
    async with following(*led) as node:
        node.leader.errors[0] = ErrorCode.FENCED_LEADER_EPOCH
        fenced, other = (node.follow(log) for log in here)
        await node.until(lambda: len(node.leader.requests) > 2)
        for log in led:
            append(log, b"value", epoch=6)
        del node.leader.errors[0]
        node.lead_by(other, 6)
        await node.until(lambda: values(here[1]) == [b"value"])
        await node.clock.pass_time(10 * BACKOFF_MS)
        assert values(here[0]) == []

        node.lead_by(fenced, 6)
        await node.until(lambda: values(here[0]) == [b"value"])


async def test_what_a_leader_refuses_is_told_once_in_one_line_for_each_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At DEBUG where the leader or the follower may only have heard of a change before the other."""
    caplog.set_level(logging.DEBUG, logger="kafka.server.ReplicaFetcherThread")
    led, here = [log_of(number) for number in range(7)], [log_of(number) for number in range(7)]

    def told(count: int) -> list[tuple[str, str]]:
        lines = [(r.levelname, r.getMessage().partition(" answers ")[2]) for r in caplog.records[:count]]
        caplog.clear()
        return lines

    storage = "STORAGE_ERROR for 5 partitions (orders-0, orders-1, orders-2 and 2 more): "
    unknown = "UNKNOWN_TOPIC_ID for orders-5: This server does not host this topic ID."
    fenced = "FENCED_LEADER_EPOCH for orders-6: The leader epoch in the request is older"
    async with following(*led) as node:
        node.leader.errors = dict.fromkeys(range(5), ErrorCode.KAFKA_STORAGE_ERROR)
        node.leader.errors |= {5: ErrorCode.UNKNOWN_TOPIC_ID, 6: ErrorCode.FENCED_LEADER_EPOCH}
        for log in here:
            node.follow(log)
        levels = []
        for count in (3, 2, 2):  # fenced ones are not asked for again
            await node.until(lambda count=count: len(caplog.records) == count)
            lines = told(count)
            levels.append([level for level, _ in lines])
            for (_, text), expected in zip(lines, (storage, unknown, fenced), strict=False):
                assert expected in text
            await node.clock.pass_time(BACKOFF_MS)
    assert levels == [["INFO", "DEBUG", "DEBUG"], ["DEBUG", "INFO"], ["DEBUG", "DEBUG"]]


async def test_a_failed_disk_stops_only_its_partitions_without_a_line_for_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    led, here = [log_of(number) for number in range(5)], [log_of(number) for number in range(5)]
    for log in led:
        append(log, b"value", epoch=5)
    for log in here[:4]:
        log.state.offline = OSError(5, "broken")
    async with following(*led) as node:
        for log in here:
            node.follow(log)
        await node.until(lambda: values(here[4]) == [b"value"])
        await node.clock.pass_time(10 * BACKOFF_MS)
        assert [log.state.log_end_offset for log in here] == [0, 0, 0, 0, 1]
        [fetcher] = node.fetchers.running.values()
        assert [follower.has_stopped for follower in fetcher.followers] == [True, True, True, True, False]
    assert caplog.messages == []


async def test_a_leader_that_cannot_be_reached_is_tried_again_after_the_backoff() -> None:
    led, here = log_of(0), log_of(0)
    append(led, b"value", epoch=5)
    async with following(led) as node:
        node.refuses = ConnectionRefusedError("no one there")
        node.follow(here)
        await settle()
        assert node.connections == 1
        await node.clock.pass_time(BACKOFF_MS - 1)
        assert node.connections == 1

        node.refuses = None
        await node.clock.pass_time(1)
        await node.until(lambda: values(here) == [b"value"])
        assert node.connections == 2


async def test_an_answer_about_a_partition_that_was_left_is_not_written() -> None:
    led, here = log_of(0), log_of(0)
    async with following(led) as node:
        partition = node.follow(here)
        await node.until(lambda: len(node.leader.requests) > 1)
        append(led, b"value", epoch=5)
        node.fetchers.resign(partition)
        node.leader.wake()
        await settle()
        assert here.state.log_end_offset == 0
    assert node.leader.is_closed


async def test_a_leader_that_has_forgotten_the_session_gets_a_full_request() -> None:
    led, here = log_of(0), log_of(0)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: len(node.leader.requests) == 2)
        append(led, b"a", epoch=5)
        await node.until(lambda: here.state.log_end_offset == 1)
        node.leader._sessions = FetchSessionCache(iter(range(5000, 6000)).__next__)
        append(led, b"b", epoch=5)
        await node.until(lambda: values(here) == [b"a", b"b"])
    assert [request.session_epoch for request in node.leader.requests].count(0) == 2


async def test_a_partition_that_is_left_while_the_fetcher_connects_holds_up_no_other() -> None:
    led, here = [log_of(0), log_of(1)], [log_of(0), log_of(1)]
    for log in led:
        append(log, b"value", epoch=5)
    async with following(*led) as node:
        node.holds = asyncio.Event()
        left, _ = (node.follow(log) for log in here)
        await settle()
        node.fetchers.resign(left)
        node.holds.set()
        await node.until(lambda: values(here[1]) == [b"value"])
        assert values(here[0]) == []


async def test_records_of_many_segments_are_written_as_their_files_are_made() -> None:
    led, here = log_of(0, segment_bytes=300), log_of(0, segment_bytes=300)
    for number in range(50):
        append(led, b"%d" % number, epoch=5)
    async with following(led) as node:
        node.follow(here)
        await node.until(lambda: values(here) == values(led))
    assert [s.base_offset for s in here.state.segments] == [s.base_offset for s in led.state.segments]


async def test_a_throttled_replica_that_lags_fetches_no_more_than_the_rate_and_others_go_on() -> None:
    led = [log_of(number) for number in range(2)]
    slow, quick = log_of(0, follower_replication_throttled_replicas=(f"0:{FOLLOWER}",)), log_of(1)
    async with following(*led) as node:
        node.fetchers.throttle(1_000)
        for log in led:
            append(log, bytes(5_000), epoch=5)
        partition = node.follow(slow)
        node.follow(quick)
        await node.until(lambda: slow.state.log_end_offset == quick.state.log_end_offset == 1)
        append(led[0], b"for one that does not lag", epoch=5)
        await node.until(lambda: slow.state.log_end_offset == 2)

        append(led[0], b"for one that lags", epoch=5)
        append(led[1], b"for one that is not throttled", epoch=5)
        node.lead_by(partition, 6)  # until the first answer of an epoch a replica counts as one that lags
        await node.until(lambda: quick.state.log_end_offset == 2)
        await node.clock.pass_time(BACKOFF_MS)
        assert slow.state.log_end_offset == 2

        await node.clock.pass_time(11_000)
        await node.until(lambda: slow.state.log_end_offset == 3)


async def test_partitions_are_spread_over_the_fetchers_and_spread_anew_for_another_number() -> None:
    led, here = [log_of(n) for n in range(6)], [log_of(n) for n in range(6)]
    async with following(*led) as node:
        for log in here:
            node.follow(log)
        await node.until(lambda: node.connections == 1)
        node.fetchers.resize(3)
        await node.until(lambda: node.connections == 3)
        for log in led:
            append(log, b"value", epoch=5)
        await node.until(lambda: all(values(log) == [b"value"] for log in here))
