"""The share partitions of a node: loaded from their coordinator, written in order, dropped in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Optional

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.steady_timers import SteadyTimers
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.replication.partition import Partition
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import (
    OK,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    FetchedBatch,
    Result,
    StateRead,
)
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import Persisted, StateWrite, WrittenBatch, replay
from pykafka_broker.share.settings import (
    EARLIEST,
    OffsetResetStrategy,
    SharePartitionSettings,
    ShareSettings,
)
from pykafka_broker.share.share_partition import LedSharePartition, ShareNode
from pykafka_broker.share.share_partitions import SharePartitions
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.log.logs import TOPIC_ID, append
from tests.replication.leading import registration
from tests.replication.test_partition import held
from tests.support.replicas import led

GROUP = "workers"
KEY = SharePartitionKey(GROUP, TOPIC_ID, 0)
LEADER_EPOCH = 5
LOCK_MS = 30_000
ACCEPT, RELEASE = (AcknowledgeType.ACCEPT,), (AcknowledgeType.RELEASE,)


class States:
    """A share coordinator that keeps what it is told, and answers when it may."""

    def __init__(self) -> None:
        self.kept: Optional[Persisted] = Persisted(0)
        self.asked: list[object] = []
        self.free = asyncio.Event()
        self.free.set()
        self.error: Result | Exception = OK

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> StateRead:
        assert key == KEY
        self.asked.append(("read", leader_epoch))
        await self._outcome()
        error = self._error()
        if error.error is not ErrorCode.NONE:
            return StateRead(error.error, error.message)
        if self.kept is None:
            return StateRead(ErrorCode.NONE, None, 1, -1)
        return StateRead(ErrorCode.NONE, None, 1, self.kept.start_offset, self.kept.batches)

    async def write(self, key: SharePartitionKey, leader_epoch: int, write: StateWrite) -> Result:
        assert (key, leader_epoch) == (KEY, LEADER_EPOCH)
        self.asked.append(write)
        await self._outcome()
        error = self._error()
        if error.error is ErrorCode.NONE:
            self.kept = replay(self.kept or Persisted(write.start_offset), write)
        return error

    async def _outcome(self) -> None:
        await self.free.wait()

    def _error(self) -> Result:
        if isinstance(self.error, Exception):
            raise self.error
        return self.error

    @property
    def writes(self) -> list[StateWrite]:
        return [asked for asked in self.asked if isinstance(asked, StateWrite)]


class Reads:
    """Threads that read at once."""

    async def run(self, log: PartitionLog, read: Callable[[], Any]) -> Any:
        return read()


class Node:
    """A node that leads orders-0, with a log of so many batches of five records."""

    def __init__(self, batches: int = 4, settings: SharePartitionSettings | None = None) -> None:
        self.clock = VirtualClock()
        self.states = States()
        self.partition: Partition = held(clock=self.clock)
        for _ in range(batches):
            append(self.partition.log, *[b"value"] * 5, epoch=LEADER_EPOCH)
        self.partition.become(registration(1, replicas=(1,), leader_epoch=LEADER_EPOCH))
        self.shares = SharePartitions(
            ShareNode(self.states, Reads(), SteadyTimers(WallTimers(self.clock))),
            ShareSettings(settings or SharePartitionSettings()),
        )

    async def opened(self) -> LedSharePartition:
        """The share partition, loaded."""
        share = self.shares.open(GROUP, led(self.partition))
        assert await loaded(share) == OK
        return share

    def open(self) -> LedSharePartition:
        return self.shares.open(GROUP, led(self.partition))

    def find(self) -> LedSharePartition | None:
        return self.shares.find(*KEY)


def loaded(share: LedSharePartition) -> asyncio.Future[Result]:
    """What is told of its state."""
    answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    share.initialize(answer.set_result)
    return answer


def fetch(
    share: LedSharePartition, member_id: str = "ann", max_records: int = 5
) -> list[tuple[int, int, int]]:
    """Acquire from the log; the first and last offset and delivery count of what was acquired."""
    fetch_id = 77
    offset = share.begin_fetch(fetch_id)
    if offset is None:
        return []
    end = share.partition.log.state.high_watermark
    batches = tuple(FetchedBatch(base, base + 4) for base in range(offset // 5 * 5, end, 5))
    acquired = share.acquire(
        member_id,
        offset,
        batches,
        max_records=max_records,
        batch_size=500,
        mode=AcquireMode.BATCH_OPTIMIZED,
        aborted=(),
    )
    share.end_fetch(fetch_id, has_read=True)
    return [(each.first_offset, each.last_offset, each.delivery_count) for each in acquired.records]


def acknowledge(
    share: LedSharePartition, first: int, last: int, types: tuple[int, ...] = ACCEPT, member_id: str = "ann"
) -> Awaitable[Result]:
    return share.acknowledge(member_id, (AcknowledgementBatch(first, last, types),))


def listening(share: LedSharePartition) -> list[object]:
    """The wakes from now on."""
    wakes: list[object] = []
    share.on_advance.append(wakes.append)
    return wakes


# ---- loading ----


async def test_the_first_fetch_has_the_state_read_and_later_ones_find_it_loaded() -> None:
    node = Node()
    node.states.kept = Persisted(3, (WrittenBatch(3, 4, Delivery.ACKNOWLEDGED, 1),))
    share = node.open()
    first, second = loaded(share), loaded(share)
    assert (await second).error is ErrorCode.LEADER_NOT_AVAILABLE
    assert share.begin_fetch(1) is None

    assert await first == OK
    assert node.states.asked == [("read", LEADER_EPOCH)]
    assert node.open() is node.find() is share
    assert await loaded(share) == OK
    assert fetch(share) == [(5, 9, 1)]


async def test_a_share_partition_that_is_loaded_wakes_those_who_wait() -> None:
    node = Node()
    share = node.open()
    wakes = listening(share)
    await loaded(share)
    await settle()
    assert wakes == [share]


@pytest.mark.parametrize(
    ("reset", "offset"),
    [
        (OffsetResetStrategy("latest"), 20),
        (OffsetResetStrategy(EARLIEST), 5),
        (OffsetResetStrategy("by_duration", 1_000), 5),
    ],
)
async def test_a_group_without_state_begins_where_it_is_configured_to(
    reset: OffsetResetStrategy, offset: int
) -> None:
    node = Node(settings=SharePartitionSettings(offset_reset=reset))
    node.states.kept = None
    node.partition.log.trimmer.delete_records(5)

    share = await node.opened()

    assert share.begin_fetch(1) == offset


async def test_a_group_that_begins_at_a_time_for_which_there_is_no_record_yet_tries_again() -> None:
    node = Node(settings=SharePartitionSettings(offset_reset=OffsetResetStrategy("by_duration", 1_000)))
    node.states.kept = None
    node.clock.set_wall_clock(5_000)

    assert (await loaded(node.open())).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert node.find() is None
    append(node.partition.log, b"new", epoch=LEADER_EPOCH)  # of long ago, by its own timestamp
    assert (await loaded(node.open())).error is ErrorCode.OFFSET_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Result(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no"),
            Result(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no"),
        ),
        (Result(ErrorCode.FENCED_LEADER_EPOCH), Result(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        (KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"), Result(ErrorCode.UNKNOWN_SERVER_ERROR, "gone")),
        (RuntimeError("a bug"), Result(ErrorCode.UNKNOWN_SERVER_ERROR)),
    ],
)
async def test_a_state_that_cannot_be_read_is_read_again_by_the_next_fetch(
    answer: Result | Exception, told: Result
) -> None:
    node = Node()
    node.states.error = answer
    share = node.open()

    assert await loaded(share) == told
    assert node.find() is None
    assert share.is_fenced

    node.states.error = OK
    assert await loaded(node.open()) == OK


# ---- writes ----


async def test_what_is_acknowledged_is_answered_when_it_is_written() -> None:
    node = Node()
    share = await node.opened()
    assert fetch(share) == [(0, 4, 1)]
    node.states.free.clear()

    answer = asyncio.ensure_future(acknowledge(share, 0, 4))
    await settle()
    assert not answer.done()
    node.states.free.set()

    assert await answer == OK
    assert node.states.kept == Persisted(0, (WrittenBatch(0, 4, Delivery.ACKNOWLEDGED, 1),))
    assert share.state.start_offset == 5


async def test_what_comes_while_a_write_is_on_its_way_goes_together_in_the_next() -> None:
    node = Node()
    share = await node.opened()
    for _ in range(3):
        fetch(share)
    node.states.free.clear()

    answers = [asyncio.ensure_future(acknowledge(share, base, base + 4)) for base in (0, 5)]
    await settle()
    answers.append(asyncio.ensure_future(acknowledge(share, 10, 10, RELEASE)))
    answers.append(asyncio.ensure_future(acknowledge(share, 11, 11)))
    await settle()
    node.states.free.set()
    assert await asyncio.gather(*answers) == [OK] * 4

    assert [write.batches for write in node.states.writes] == [
        (WrittenBatch(0, 9, Delivery.ACKNOWLEDGED, 1),),
        (WrittenBatch(10, 10, Delivery.AVAILABLE, 1), WrittenBatch(11, 11, Delivery.ACKNOWLEDGED, 1)),
    ]
    # The start offset has moved when the first write was answered, but the second was decided before.
    assert [write.start_offset for write in node.states.writes] == [0, 0]


async def test_a_write_that_fails_gives_the_records_back_to_their_member() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    node.states.error = Result(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "later")

    assert await acknowledge(share, 0, 4) == Result(ErrorCode.COORDINATOR_NOT_AVAILABLE, "later")
    node.states.error = RuntimeError("a bug")
    failed = await acknowledge(share, 0, 4)
    assert failed.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert failed.message == "Failed to write the share group state for share partition workers-orders-0"

    node.states.error = OK
    assert node.find() is share
    assert await acknowledge(share, 0, 4) == OK


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_a_share_partition_that_its_coordinator_fences_is_dropped(
    error: ErrorCode, told: ErrorCode
) -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    node.states.error = Result(error)
    wakes = listening(share)

    assert (await acknowledge(share, 0, 4)).error is told
    await settle()

    assert node.find() is None
    assert wakes == [share]
    assert share.begin_fetch(1) is None


# ---- locks ----


async def test_records_whose_lock_ends_are_written_as_available_and_wake_those_who_wait() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    wakes = listening(share)

    await node.clock.pass_time(LOCK_MS)

    assert wakes == [share]
    assert node.states.kept == Persisted(0, (WrittenBatch(0, 4, Delivery.AVAILABLE, 1),))
    assert fetch(share, "ben") == [(0, 4, 2)]


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
async def test_setting_the_wall_clock_neither_ends_nor_prolongs_a_lock(by_ms: int) -> None:
    node = Node()
    share = await node.opened()
    fetch(share, "ann")
    await node.clock.pass_time(10_000)
    fetch(share, "ben")
    node.clock.set_wall_clock(by_ms)
    fetch(share, "cem")

    await node.clock.pass_time(LOCK_MS - 10_000)
    assert node.states.kept == Persisted(0, (WrittenBatch(0, 4, Delivery.AVAILABLE, 1),))
    await node.clock.pass_time(10_000)

    assert node.states.kept == Persisted(0, (WrittenBatch(0, 14, Delivery.AVAILABLE, 1),))


async def test_a_group_may_change_its_settings_while_it_consumes() -> None:
    node = Node()
    share = await node.opened()
    node.shares.settings = ShareSettings(
        by_group={GROUP: SharePartitionSettings(ShareConfig(record_lock_duration_ms=1_000))}
    )
    fetch(share)

    await node.clock.pass_time(1_000)

    assert node.states.kept == Persisted(0, (WrittenBatch(0, 4, Delivery.AVAILABLE, 1),))
    assert node.shares.settings_of("others") == SharePartitionSettings()


async def test_a_member_that_leaves_gives_its_records_back() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    fetch(share, "ben")

    share.release("ann")
    share.release("nobody")
    await settle()

    assert node.states.kept == Persisted(0, (WrittenBatch(0, 4, Delivery.AVAILABLE, 1),))
    assert fetch(share, "ben", max_records=1) == [(0, 4, 2)]


async def test_one_fetch_reads_at_a_time_and_wakes_the_others_when_it_has() -> None:
    node = Node()
    share = await node.opened()
    wakes = listening(share)

    assert share.begin_fetch(1) == 0
    assert share.begin_fetch(2) is None
    share.end_fetch(1, has_read=False)
    await settle()
    assert wakes == []
    assert share.begin_fetch(2) == 0
    share.end_fetch(2, has_read=True)
    await settle()
    assert wakes == [share]


async def test_no_more_is_read_than_may_be_acquired() -> None:
    node = Node(settings=SharePartitionSettings(ShareConfig(partition_max_record_locks=100)))
    share = await node.opened()

    assert share.offsets_wanted(7) == 8
    assert share.offsets_wanted(1_000_000) == 101
    fetch(share)
    assert share.offsets_wanted(7) == 12


async def test_a_log_that_begins_later_moves_the_start_offset() -> None:
    node = Node()
    share = await node.opened()
    node.partition.log.trimmer.delete_records(10)

    share.log_start_moved()

    assert share.begin_fetch(1) == 10


# ---- the end ----


async def test_with_the_leadership_its_share_partitions_go() -> None:
    node = Node()
    share = await node.opened()
    other = node.shares.open("others", led(node.partition))
    wakes = listening(share)
    assert len(node.shares) == 2

    node.shares.resign(node.partition)
    await settle()

    assert len(node.shares) == 0
    assert wakes == [share]
    assert share.is_fenced and other.is_fenced


async def test_who_waits_for_the_state_of_a_dropped_one_is_told() -> None:
    node = Node()
    node.states.free.clear()
    share = node.open()
    first = loaded(share)
    await settle()

    node.shares.drop_group(GROUP)

    assert (await first).error is ErrorCode.LEADER_NOT_AVAILABLE
    node.states.free.set()
    await settle()
    assert share.is_fenced


async def test_the_writes_of_a_dropped_one_go_on_and_its_successor_reads_after_them() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    node.states.free.clear()
    answer = asyncio.ensure_future(acknowledge(share, 0, 4))
    await settle()

    node.shares.drop_group(GROUP)
    successor = node.open()
    assert successor is not share
    is_loaded = loaded(successor)
    await settle()
    assert node.states.asked[1:] == node.states.writes  # it has not read yet
    node.states.free.set()

    assert (await answer, await is_loaded) == (OK, OK)
    assert fetch(successor) == [(5, 9, 1)]


async def test_the_locks_of_a_dropped_one_do_not_end_any_more() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    node.shares.resign(node.partition)

    await node.clock.pass_time(2 * LOCK_MS)

    assert node.states.writes == []


async def test_only_the_share_partitions_of_one_group_are_dropped_with_it() -> None:
    node = Node()
    share = await node.opened()
    other = node.shares.open("others", led(node.partition))

    node.shares.drop_group(GROUP)
    node.shares.drop_group("unknown")

    assert (share.is_fenced, other.is_fenced) == (True, False)
    node.shares.drop_everything()
    assert other.is_fenced


async def test_a_node_that_stops_answers_all_who_wait_and_opens_nothing_any_more() -> None:
    node = Node()
    share = await node.opened()
    fetch(share)
    node.states.free.clear()
    answer = asyncio.ensure_future(acknowledge(share, 0, 4))
    await settle()

    await node.shares.close()

    with pytest.raises(KafkaError) as stopped:
        await answer
    assert stopped.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert share.begin_fetch(1) is None
    with pytest.raises(KafkaError) as stopped:
        node.open()
    assert stopped.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.find() is None
