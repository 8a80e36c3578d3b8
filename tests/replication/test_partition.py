"""One partition around a log: what it commits, refuses and acknowledges, as its leadership says."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pykafka_broker.cluster.image import BrokerRegistration, RegisteredEndpoint
from pykafka_broker.controller.core.events import InSyncReplicas
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.machine.history import Decision, Kind, Tell, unheard
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.events import IsrChangeAnswered, IsrProposal
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.lagging import LAGS
from pykafka_broker.replication.leading_replica import PartitionPorts
from pykafka_broker.replication.partition import Partition
from pykafka_broker.replication.topic_counts import TopicCounts
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, batch, new_log
from tests.replication.leading import LAG_MS, LEADER, registration
from tests.support.replicas import FilesAtOnce, led

ACKS_LEADER, ACKS_ALL = 1, -1


class Disk:
    """A disk whose syncs end when a test says so."""

    def __init__(self) -> None:
        self.syncs: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def run(self, log: PartitionLog, job: Callable[[], Any]) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.syncs.append((done, job))
        return done

    def sync(self) -> None:
        syncs, self.syncs = self.syncs, []
        for done, job in syncs:
            done.set_result(job())

    def fail(self, error: Exception) -> None:
        for done, _ in self.syncs:
            done.set_exception(error)


class Controller:
    """A controller that has been asked for ISRs, and has not answered."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, int, IsrProposal]] = []
        self.answered: list[Callable[[IsrChangeAnswered], None]] = []

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        change: IsrProposal,
        answered: Callable[[IsrChangeAnswered], None],
    ) -> None:
        self.asked.append((topic_id, partition, change))
        self.answered.append(answered)

    def refuse(self) -> None:
        self.answer(ErrorCode.INELIGIBLE_REPLICA)

    def answer(self, error: ErrorCode, partition: InSyncReplicas | None = None) -> None:
        _, _, change = self.asked[-1]
        self.answered[-1](IsrChangeAnswered(change, error, partition))

    def agree(self) -> None:
        """Make the change that was asked for."""
        _, _, change = self.asked[-1]
        isr = tuple(replica_id for replica_id, _ in change.new_isr)
        made = InSyncReplicas(LEADER, change.leader_epoch, isr, change.partition_epoch + 1)
        self.answer(ErrorCode.NONE, made)


SESSION_MS = 9_000
#: In which registration brokers 2 and 3 are.
BROKER_EPOCH = 40


class Brokers:
    """The brokers of the newest metadata."""

    def __init__(self) -> None:
        self.fenced: set[int] = set()

    def of(self, broker_id: int) -> BrokerRegistration:
        rack = "a" if broker_id == LEADER else "b"
        listeners = {"PLAINTEXT": RegisteredEndpoint("localhost", 9092)}
        fenced = broker_id in self.fenced
        return BrokerRegistration(broker_id, BROKER_EPOCH, bytes(16), listeners, rack, fenced=fenced)


def held(
    disk: Disk | None = None,
    controller: Controller | None = None,
    clock: VirtualClock | None = None,
    brokers: Brokers | None = None,
    tell: Tell = unheard,
    **settings: Any,
) -> Partition:
    ports = PartitionPorts(
        LEADER,
        disk or Disk(),
        FilesAtOnce(),
        clock or VirtualClock(),
        controller or Controller(),
        registration_of=(brokers or Brokers()).of,
        follower_rate=RateLimit(1_000, samples=11, sample_ms=1_000),
        lag_time_max_ms=LAG_MS,
        tell=tell,
    )
    return Partition("orders", TOPIC_ID, 0, new_log(MemoryFiles(), **settings), ports, TopicCounts())


def produce(partition: Partition, *values: bytes, acks: int = ACKS_ALL) -> int:
    """The offset after the batch."""
    result = led(partition).append(batch(*values), required_acks=acks, produce_version=9, now_ms=NOW)
    if isinstance(result, asyncio.Future):
        result = result.result()
    assert isinstance(result, AppendResult)
    return result.last_offset + 1


def acknowledged(
    partition: Partition, next_offset: int, acks: int, timeout_ms: int | None = None
) -> Awaitable[ErrorCode] | None:
    return led(partition).committing.acknowledged(next_offset, acks, timeout_ms)


async def test_a_batch_that_has_waited_for_a_file_has_the_time_at_which_it_is_appended() -> None:
    clock = VirtualClock()
    partition = held(clock=clock, message_timestamp_type="LogAppendTime")
    partition.become(registration(1, replicas=(1,)))
    before_ms = clock.now_ms() - 5_000

    appended = led(partition).append(
        batch(b"one"), required_acks=ACKS_ALL, produce_version=9, now_ms=before_ms
    )

    assert isinstance(appended, asyncio.Future)  # the leader epoch is written down before
    assert appended.result().log_append_time_ms == clock.now_ms()


async def turn() -> None:
    """Let the sync begin."""
    await asyncio.sleep(0)


async def test_without_followers_what_is_appended_is_committed_at_once() -> None:
    partition = held()
    partition.become(registration(1, replicas=(1,)))
    end = produce(partition, b"one", b"two")
    assert partition.log.state.high_watermark == end == 2
    assert led(partition).committing.acknowledges_at_once
    assert acknowledged(partition, end, ACKS_ALL) is None


async def test_what_an_earlier_process_left_is_committed_when_the_node_leads_alone() -> None:
    partition = held()
    partition.log.writer.append(batch(b"one"), leader_epoch=5, now_ms=NOW)
    assert partition.log.state.high_watermark == 0
    partition.become(registration(1, replicas=(1,)))
    assert partition.log.state.high_watermark == 1


async def test_a_leader_that_has_resigned_takes_no_batch_of_a_coordinator() -> None:
    partition = held()
    partition.become(registration(1))
    leader = led(partition)
    partition.become(registration(2, 1, leader_epoch=6)._replace(leader=2))
    assert (partition.leading, partition.leader_epoch) == (None, 6)
    with pytest.raises(KafkaError) as refused:
        leader.append_internal(batch(b"state"), NOW)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_where_others_are_in_sync_nothing_is_committed_without_them() -> None:
    partition = held()
    partition.become(registration(1, 2))
    produce(partition, b"one", acks=ACKS_LEADER)
    assert (partition.log.state.log_end_offset, partition.log.state.high_watermark) == (1, 0)

    partition.become(registration(1, partition_epoch=8))  # the other has left the ISR

    assert partition.log.state.high_watermark == 1


async def test_with_too_few_replicas_in_sync_only_those_who_wait_for_all_are_refused() -> None:
    partition = held(min_insync_replicas=2)
    partition.become(registration(1))
    with pytest.raises(KafkaError) as refused:
        produce(partition, b"one")
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(KafkaError) as refused:
        led(partition).append_internal(batch(b"state"), NOW)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.state.log_end_offset == 0

    produce(partition, b"one", acks=ACKS_LEADER)
    assert partition.log.state.high_watermark == 0

    partition.configure(LogConfig(min_insync_replicas=1))
    assert partition.log.state.high_watermark == 1
    assert produce(partition, b"two") == partition.log.state.high_watermark == 2


async def test_a_topic_with_one_replica_cannot_ask_for_more() -> None:
    partition = held(min_insync_replicas=2)
    partition.become(registration(1, replicas=(1,)))
    assert produce(partition, b"one") == partition.log.state.high_watermark == 1


async def test_where_syncs_are_asked_for_batches_are_committed_and_acknowledged_after_them() -> None:
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, replicas=(1,)))
    waiting = [acknowledged(partition, produce(partition, value), ACKS_ALL) for value in (b"one", b"two")]
    assert not led(partition).committing.acknowledges_at_once
    await turn()
    assert partition.log.state.high_watermark == 0

    partition.become(registration(1, replicas=(1,), partition_epoch=8))
    assert partition.log.state.high_watermark == 0, "new metadata commits nothing that is not on disk"
    disk.sync()

    assert [await one for one in waiting if one is not None] == [ErrorCode.NONE, ErrorCode.NONE]
    assert partition.log.state.high_watermark == 2
    assert led(partition).committing.acknowledges_at_once


async def test_what_another_sync_has_put_on_disk_is_committed_when_it_is_acknowledged() -> None:
    """Consumers saw it with the next append only."""
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, replicas=(1,)))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert waiting is not None
    partition.log.flusher.flush()
    await turn()

    assert await waiting is ErrorCode.NONE
    assert not disk.syncs
    assert partition.log.state.high_watermark == 1


async def test_a_producer_whose_records_the_next_leader_has_cut_before_the_sync_has_to_ask_it() -> None:
    """It got no answer at all."""
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, 2))
    waiting = acknowledged(partition, produce(partition, b"one", acks=ACKS_LEADER), ACKS_LEADER)
    assert isinstance(waiting, asyncio.Future)
    await turn()
    partition.become(registration(2, leader_epoch=6)._replace(leader=2))
    partition.log.trimmer.truncate_to(0)
    disk.sync()
    await turn()
    assert waiting.done()
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_the_syncs_of_a_partition_end_when_it_is_deleted() -> None:
    """They were repeated in a loop, because the sync of a deleted log does nothing."""
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, replicas=(1,)))
    waiting = acknowledged(partition, produce(partition, b"one", acks=ACKS_LEADER), ACKS_LEADER)
    assert isinstance(waiting, asyncio.Future)
    await turn()
    partition.resign()
    partition.log.retire()
    disk.sync()
    await turn()
    assert not disk.syncs
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_sync_that_fails_in_any_way_acknowledges_nothing() -> None:
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, replicas=(1,)))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert waiting is not None
    await turn()
    disk.fail(RuntimeError("can't start new thread"))
    assert await waiting is ErrorCode.KAFKA_STORAGE_ERROR


async def test_brokers_that_are_not_assigned_may_not_follow() -> None:
    partition = held()
    partition.become(registration(1, replicas=(1, 2)))
    led(partition).check_follower(2, -1)
    with pytest.raises(KafkaError) as refused:
        led(partition).check_follower(3, -1)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- followers ------------------------------------------------------------------------------------


async def test_the_high_watermark_goes_as_far_as_every_follower_in_sync_has_fetched() -> None:
    partition = held()
    partition.become(registration(1, 2, 3))
    produce(partition, b"one", b"two", acks=ACKS_LEADER)

    led(partition).follower_fetched(2, BROKER_EPOCH, 2)
    assert partition.log.state.high_watermark == 0
    led(partition).follower_fetched(3, BROKER_EPOCH, 1)
    assert partition.log.state.high_watermark == 1
    led(partition).follower_fetched(3, BROKER_EPOCH, 2)
    assert partition.log.state.high_watermark == 2


async def test_a_fetch_of_an_earlier_life_of_the_follower_moves_nothing() -> None:
    partition = held()
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    with pytest.raises(KafkaError) as refused:
        led(partition).follower_fetched(2, BROKER_EPOCH - 1, end)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.state.high_watermark == 0


async def test_who_wants_all_acks_waits_for_followers_and_who_wants_the_leaders_does_not() -> None:
    partition = held()
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    assert acknowledged(partition, end, ACKS_LEADER) is None
    waiting = acknowledged(partition, end, ACKS_ALL)
    assert isinstance(waiting, asyncio.Future)

    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    assert not waiting.done()
    led(partition).follower_fetched(2, BROKER_EPOCH, end)

    assert await waiting is ErrorCode.NONE
    assert acknowledged(partition, end, ACKS_ALL) is None


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python are called, without what a garbage collection would call."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


async def test_an_append_looks_at_none_of_the_producers_that_wait_for_followers() -> None:
    partition = held()
    partition.become(registration(1, 2))
    produce(partition, b"one")
    without = calls(lambda: produce(partition, b"two"))
    waiting = [acknowledged(partition, produce(partition, b"more"), ACKS_ALL) for _ in range(20)]

    assert calls(lambda: produce(partition, b"last")) == without

    led(partition).follower_fetched(2, BROKER_EPOCH, partition.log.state.log_end_offset)
    assert [await each for each in waiting if each is not None] == [ErrorCode.NONE] * 20


async def test_a_fetch_that_moves_nothing_looks_at_none_of_the_producers_that_wait_for_followers() -> None:
    partition = held()
    partition.become(registration(1, 2))
    produce(partition, b"one")

    def fetch() -> None:
        led(partition).follower_fetched(2, BROKER_EPOCH, 0)

    fetch()
    without = calls(fetch)
    waiting = [acknowledged(partition, produce(partition, b"more"), ACKS_ALL) for _ in range(20)]

    assert calls(fetch) == without

    led(partition).follower_fetched(2, BROKER_EPOCH, partition.log.state.log_end_offset)
    assert [await each for each in waiting if each is not None] == [ErrorCode.NONE] * 20


async def test_where_syncs_are_asked_for_all_acks_wait_for_the_sync_and_for_the_followers() -> None:
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    by_leader, by_all = (acknowledged(partition, end, acks) for acks in (ACKS_LEADER, ACKS_ALL))
    assert isinstance(by_leader, asyncio.Future) and isinstance(by_all, asyncio.Future)
    await turn()
    disk.sync()
    assert await by_leader is ErrorCode.NONE
    assert not by_all.done()

    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert await by_all is ErrorCode.NONE

    end = produce(partition, b"two")
    by_all = acknowledged(partition, end, ACKS_ALL)
    assert isinstance(by_all, asyncio.Future)
    await turn()
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert not by_all.done(), "the follower has it, but the disk of this node does not"
    disk.sync()
    assert await by_all is ErrorCode.NONE


async def test_a_producer_waits_for_followers_no_longer_than_it_asked_to() -> None:
    clock = VirtualClock()
    partition = held(clock=clock)
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    impatient = acknowledged(partition, end, ACKS_ALL, 1_000)
    patient = acknowledged(partition, end, ACKS_ALL, 2_000)
    assert isinstance(impatient, asyncio.Future) and isinstance(patient, asyncio.Future)
    clock.advance(1_000)
    assert await impatient is ErrorCode.REQUEST_TIMED_OUT
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert await patient is ErrorCode.NONE


async def test_a_producer_that_waits_for_followers_has_to_ask_the_next_leader() -> None:
    partition = held()
    partition.become(registration(1, 2))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert waiting is not None
    partition.become(registration(2, leader_epoch=6)._replace(leader=2))
    assert (partition.leader, partition.leader_epoch) == (2, 6)
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_hears_neither_controller_nor_followers_sends_producers_to_the_next_one() -> None:
    clock = VirtualClock()
    partition = held(clock=clock)
    partition.become(registration(1, 2))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert waiting is not None
    clock.advance(SESSION_MS)
    led(partition).check_controller(None)
    assert isinstance(waiting, asyncio.Future) and not waiting.done()

    led(partition).check_controller(SESSION_MS)

    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError) as refused:
        produce(partition, b"two")
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    end = produce(partition, b"three", acks=1)
    led(partition).check_controller(None)
    waiting = acknowledged(partition, produce(partition, b"four"), ACKS_ALL)
    assert waiting is not None
    led(partition).follower_fetched(2, BROKER_EPOCH, end + 1)
    assert await waiting is ErrorCode.NONE


async def test_a_leader_whose_followers_fetch_goes_on_without_a_controller() -> None:
    clock = VirtualClock()
    partition = held(clock=clock)
    partition.become(registration(1, 2))
    clock.advance(SESSION_MS)
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    clock.advance(SESSION_MS - 1)
    led(partition).check_controller(SESSION_MS)
    end = produce(partition, b"one")
    waiting = acknowledged(partition, end, ACKS_ALL)
    assert waiting is not None
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert await waiting is ErrorCode.NONE


async def test_a_leader_that_is_in_sync_alone_goes_on_without_a_controller() -> None:
    clock = VirtualClock()
    partition = held(clock=clock)
    partition.become(registration(1))
    clock.advance(10 * SESSION_MS)
    led(partition).check_controller(SESSION_MS)
    assert acknowledged(partition, produce(partition, b"one"), ACKS_ALL) is None


async def test_when_the_followers_leave_the_isr_what_waited_for_them_is_acknowledged() -> None:
    partition = held()
    partition.become(registration(1, 2))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert waiting is not None
    partition.become(registration(1, partition_epoch=8))
    assert await waiting is ErrorCode.NONE


async def test_the_controller_is_asked_once_for_an_isr_with_the_follower_that_caught_up() -> None:
    controller = Controller()
    partition = held(controller=controller)
    partition.become(registration(1))
    end = produce(partition, b"one")

    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    led(partition).follower_fetched(2, BROKER_EPOCH, end)

    wanted = (TOPIC_ID, 0, IsrProposal(5, 7, ((1, -1), (2, BROKER_EPOCH))))
    assert controller.asked == [wanted]
    controller.refuse()
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert controller.asked == [wanted, wanted], "a refused change may be asked for again"


async def test_the_controller_is_asked_for_an_isr_without_the_follower_that_lags() -> None:
    controller, clock = Controller(), VirtualClock()
    told: list[Decision] = []
    partition = held(controller=controller, clock=clock, tell=told.append)
    partition.become(registration(1, 2))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    produce(partition, b"one", b"two")
    clock.advance(LAG_MS)
    led(partition).check_lag()
    assert controller.asked == []
    assert told == []
    clock.advance(1)
    led(partition).check_lag()
    assert controller.asked == [(TOPIC_ID, 0, IsrProposal(5, 7, ((1, -1),)))]
    text = (
        f"The leader, broker 1, asked for the ISR [1] instead of [1, 2] (replica.lag.time.max.ms={LAG_MS}). "
        "Broker 2 fetched last 30 s ago, is 2 records behind, and last had all records 30 s ago."
    )
    assert told == [Decision(Kind.PARTITION, ("orders-0",), text, LAGS)]


async def test_a_refusal_that_comes_when_another_broker_leads_changes_nothing() -> None:
    controller = Controller()
    partition = held(controller=controller)
    partition.become(registration(1))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    partition.become(registration(2, leader_epoch=6, partition_epoch=8)._replace(leader=2))
    controller.refuse()
    assert not partition.leading is not None


async def test_the_leader_goes_on_with_the_controllers_answer_before_the_metadata_comes() -> None:
    controller, clock = Controller(), VirtualClock()
    partition = held(controller=controller, clock=clock)
    partition.become(registration(1, 2))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert isinstance(waiting, asyncio.Future)
    clock.advance(LAG_MS + 1)
    led(partition).check_lag()
    assert not waiting.done(), "the controller may refuse"

    controller.agree()

    assert await waiting is ErrorCode.NONE
    partition.become(registration(1, 2))  # metadata from before
    assert produce(partition, b"two") == partition.log.state.high_watermark == 2
    partition.become(registration(1, partition_epoch=8))
    led(partition).follower_fetched(2, BROKER_EPOCH, 2)
    assert controller.asked[-1] == (TOPIC_ID, 0, IsrProposal(5, 8, ((1, -1), (2, BROKER_EPOCH))))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
async def test_after_an_answer_that_leaves_it_open_the_larger_isr_counts_until_the_metadata_tells(
    error: ErrorCode,
) -> None:
    controller = Controller()
    partition = held(controller=controller)
    partition.become(registration(1))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    controller.answer(error)
    end = produce(partition, b"one")
    assert partition.log.state.high_watermark == 0
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert (partition.log.state.high_watermark, len(controller.asked)) == (1, 1)

    partition.become(registration(1, 2, partition_epoch=8))
    produce(partition, b"two")
    assert partition.log.state.high_watermark == 1


async def test_an_error_that_says_nothing_of_the_partition_is_followed_by_the_same_request() -> None:
    controller = Controller()
    partition = held(controller=controller)
    partition.become(registration(1))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    controller.answer(ErrorCode.NOT_CONTROLLER)
    assert controller.asked == [(TOPIC_ID, 0, IsrProposal(5, 7, ((1, -1), (2, BROKER_EPOCH))))] * 2


async def test_an_answer_for_an_earlier_leadership_changes_nothing() -> None:
    controller = Controller()
    partition = held(controller=controller)
    partition.become(registration(1))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    partition.become(registration(1, leader_epoch=6, partition_epoch=8))
    controller.agree()
    assert produce(partition, b"one") == partition.log.state.high_watermark == 1


async def test_a_follower_outside_the_isr_that_lags_holds_up_nothing() -> None:
    controller, clock = Controller(), VirtualClock()
    partition = held(controller=controller, clock=clock)
    partition.become(registration(1))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    controller.refuse()
    clock.advance(LAG_MS + 1)
    end = produce(partition, b"one")
    assert partition.log.state.high_watermark == end
    assert acknowledged(partition, end, ACKS_ALL) is None


@pytest.mark.parametrize("cleanup_policy", [{"delete"}, {"compact", "delete"}, set()])
def test_records_may_be_deleted_under_any_cleanup_policy_that_is_not_compaction_alone(
    cleanup_policy: set[str],
) -> None:
    partition = held(cleanup_policy=frozenset(cleanup_policy))
    partition.become(registration(1, replicas=(1,)))
    assert led(partition).deletion.delete(-1) == (0, 0)


def test_records_of_a_topic_that_is_only_compacted_are_not_deleted() -> None:
    partition = held(cleanup_policy=frozenset({"compact"}))
    partition.become(registration(1, replicas=(1,)))
    with pytest.raises(KafkaError) as refusal:
        led(partition).deletion.delete(0)
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


# --- readers and followers that wait ----------------------------------------------------------------


async def test_parked_fetches_are_woken_by_an_append_before_it_is_committed_and_by_a_new_epoch() -> None:
    partition = held()
    partition.become(registration(1, 2))
    moves: list[tuple[int, int]] = []
    partition.log.on_advance.append(
        lambda state: moves.append((state.high_watermark, partition.leader_epoch))
    )

    end = produce(partition, b"one", acks=ACKS_LEADER)
    assert moves == [(0, 5)]
    led(partition).follower_fetched(2, BROKER_EPOCH, end)
    assert moves == [(0, 5), (1, 5)]

    partition.become(registration(1, 2, leader_epoch=6, partition_epoch=8))
    partition.become(registration(1, 2, leader_epoch=7, partition_epoch=9)._replace(leader=2))
    partition.become(registration(1, 2, leader_epoch=8, partition_epoch=10)._replace(leader=3))
    assert moves[2:] == [(1, 6), (1, 7), (1, 8)]


async def test_a_follower_that_dies_holds_up_producers_only_until_the_metadata_says_so() -> None:
    brokers = Brokers()
    partition = held(brokers=brokers)
    partition.become(registration(1, 2))
    led(partition).follower_fetched(2, BROKER_EPOCH, 0)
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert isinstance(waiting, asyncio.Future)

    brokers.fenced.add(2)
    partition.become(registration(1, partition_epoch=8))
    led(partition).brokers_changed()

    assert await waiting is ErrorCode.NONE


async def test_a_new_leader_knows_the_end_when_it_has_committed_what_it_began_with() -> None:
    partition = held()
    partition.log.writer.append(batch(b"one"), leader_epoch=4, now_ms=NOW)
    known = [partition.is_end_known]  # followers answer with what they know
    partition.become(registration(1, 2))
    known.append(partition.is_end_known)
    led(partition).follower_fetched(2, BROKER_EPOCH, 1)
    assert [*known, partition.is_end_known] == [True, False, True]


async def test_records_are_deleted_when_all_live_replicas_have_deleted_them() -> None:
    clock, brokers = VirtualClock(), Brokers()
    partition = held(clock=clock, brokers=brokers)
    partition.become(registration(1, 2, 3))
    end = produce(partition, b"one", b"two")
    led(partition).follower_fetched(2, BROKER_EPOCH, end, 0)
    led(partition).follower_fetched(3, BROKER_EPOCH, end, 0)

    assert led(partition).deletion.delete(2) == (2, 0)
    patient, impatient = (led(partition).deletion.everywhere(2, timeout_ms) for timeout_ms in (5_000, 1_000))
    assert isinstance(patient, asyncio.Future) and isinstance(impatient, asyncio.Future)
    led(partition).follower_fetched(2, BROKER_EPOCH, end, 2)
    clock.advance(1_000)
    assert await impatient is ErrorCode.REQUEST_TIMED_OUT
    assert not patient.done()

    brokers.fenced.add(3)
    led(partition).brokers_changed()
    assert await patient is ErrorCode.NONE
    assert led(partition).deletion.everywhere(2, 1_000) is None
    assert led(partition).deletion.low_watermark == 2


async def test_a_client_that_waits_for_deletions_has_to_ask_the_next_leader() -> None:
    partition = held()
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    led(partition).follower_fetched(2, BROKER_EPOCH, end, 0)
    led(partition).deletion.delete(1)
    waiting = led(partition).deletion.everywhere(1, 1_000)
    assert waiting is not None
    partition.become(registration(2, leader_epoch=6, partition_epoch=8)._replace(leader=2))
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_throttled_followers_out_of_sync_get_nothing_while_too_much_was_sent() -> None:
    clock = VirtualClock()
    partition = held(clock=clock, leader_replication_throttled_replicas=("0:1",))
    partition.become(registration(1, 2))
    led(partition).throttle.count(1_000)
    assert not led(partition).throttle.holds_back(3)
    led(partition).throttle.count(1_000)
    assert led(partition).throttle.holds_back(3)
    assert not led(partition).throttle.holds_back(2), "it is in sync"
    clock.advance(2_000)
    assert not led(partition).throttle.holds_back(3)

    led(partition).throttle.count(1_000_000)
    assert led(partition).throttle.holds_back(3)
    partition.configure(LogConfig())
    assert not led(partition).throttle.holds_back(3)


async def test_consumers_are_sent_to_a_replica_in_their_rack_that_they_can_reach() -> None:
    brokers = Brokers()
    partition = held(brokers=brokers)
    partition.become(registration(1, 2))
    end = produce(partition, b"one")
    assert led(partition).nearest_replica("b", 0, "PLAINTEXT") is None
    led(partition).follower_fetched(2, BROKER_EPOCH, end, 0)
    assert led(partition).nearest_replica("b", 0, "PLAINTEXT") == 2
    assert led(partition).nearest_replica("a", 0, "PLAINTEXT") is None
    assert led(partition).nearest_replica("b", 0, "EXTERNAL") is None
    brokers.fenced.add(2)
    assert led(partition).nearest_replica("b", 0, "PLAINTEXT") is None


async def test_a_batch_is_not_acknowledged_as_safe_if_too_few_replicas_are_left_when_it_is_committed() -> (
    None
):
    disk = Disk()
    partition = held(disk, min_insync_replicas=2, flush_messages=1)
    partition.become(registration(1, 2))
    waiting = acknowledged(partition, produce(partition, b"one"), ACKS_ALL)
    assert isinstance(waiting, asyncio.Future)
    led(partition).follower_fetched(2, BROKER_EPOCH, 1)
    await turn()
    partition.log.state.advance_high_watermark(1)  # committed, and not acknowledged yet
    partition.become(registration(1, partition_epoch=8))
    disk.sync()
    assert await waiting is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
