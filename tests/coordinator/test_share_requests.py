"""What a share coordinator answers to a group coordinator, and to leaders of partitions (KIP-932)."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.checks import MAX_OVERLAPS, MAX_STATE_BATCHES
from pykafka_broker.coordinator.share.core.events import ReadResult, Refusal, StateResult, SummaryResult
from pykafka_broker.coordinator.share.core.records import Snapshot, Update
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from tests.support.shares import ShareWorld

TOPIC = b"\x11" * 16
KEY = SharePartitionKey("workers", TOPIC, 0)
DONE = StateResult()
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def refused(error: ErrorCode, message: str | None = None) -> Refusal:
    return Refusal(error, error.message if message is None else message)


@pytest.fixture
def world() -> ShareWorld:
    """Two partitions, one of which the group has begun to consume."""
    world = ShareWorld(ShareCoordinatorConfig(snapshot_update_records_per_snapshot=3), now_ms=1_000)
    world.topics[TOPIC] = 2
    assert world.initialize(KEY, state_epoch=1, start_offset=10) == DONE
    return world


def test_a_leader_reads_what_leaders_before_it_wrote(world: ShareWorld) -> None:
    assert world.read(KEY, leader_epoch=5) == ReadResult(None, 1, 10, ())
    acknowledged = StateBatch(10, 14, 1, ACKNOWLEDGED)
    released = StateBatch(15, 15, 2, AVAILABLE)
    assert world.write(KEY, acknowledged, released, state_epoch=1, leader_epoch=5, complete=5) == DONE

    assert world.read(KEY, leader_epoch=6) == ReadResult(None, 1, 10, (acknowledged, released))
    assert world.summary(KEY) == SummaryResult(None, 1, 6, 10, 5)


def test_the_start_offset_moves_and_cuts_what_is_before_it(world: ShareWorld) -> None:
    world.write(KEY, StateBatch(10, 19, 1, ACKNOWLEDGED), complete=10)
    world.write(KEY, start_offset=15, complete=5)
    assert world.read(KEY).batches == (StateBatch(15, 19, 1, ACKNOWLEDGED),)
    world.write(KEY, StateBatch(20, 20, 1, ARCHIVED), complete=6)
    assert world.read(KEY) == ReadResult(
        None, 1, 15, (StateBatch(15, 19, 1, ACKNOWLEDGED), StateBatch(20, 20, 1, ARCHIVED))
    )


def test_an_older_leader_is_fenced(world: ShareWorld) -> None:
    world.read(KEY, leader_epoch=5)
    fenced = refused(ErrorCode.FENCED_LEADER_EPOCH)
    assert world.write(KEY, leader_epoch=4) == StateResult(fenced)
    assert world.read(KEY, leader_epoch=4) == ReadResult(fenced)
    assert world.write(KEY, leader_epoch=-1) == DONE


def test_a_write_of_a_newer_leader_fences_nobody(world: ShareWorld) -> None:
    world.write(KEY, leader_epoch=9)
    assert world.summary(KEY).leader_epoch == 0
    assert world.read(KEY, leader_epoch=1).refusal is None


def test_a_read_of_the_same_leader_writes_nothing(world: ShareWorld) -> None:
    world.read(KEY, leader_epoch=5)
    assert isinstance(world.last_records[0], Update)
    world.read(KEY, leader_epoch=5)
    assert world.last_records == ()


def test_a_group_that_is_reset_begins_anew_and_fences_those_who_do_not_know_yet(world: ShareWorld) -> None:
    world.read(KEY, leader_epoch=5)
    world.write(KEY, StateBatch(10, 19, 1, ACKNOWLEDGED), state_epoch=1, leader_epoch=5, complete=10)
    assert world.initialize(KEY, state_epoch=2, start_offset=0) == DONE

    fenced = refused(ErrorCode.FENCED_STATE_EPOCH)
    assert world.write(KEY, state_epoch=1, leader_epoch=5) == StateResult(fenced)
    assert world.initialize(KEY, state_epoch=1) == StateResult(fenced)
    assert world.summary(KEY) == SummaryResult(None, 2, 0, 0, 0)
    assert world.read(KEY, leader_epoch=4) == ReadResult(refused(ErrorCode.FENCED_LEADER_EPOCH))
    assert world.read(KEY, leader_epoch=5) == ReadResult(None, 2, 0, ())


def test_a_group_without_an_offset_has_no_count_of_deliveries(world: ShareWorld) -> None:
    second = KEY._replace(partition=1)
    world.initialize(second, start_offset=-1)
    assert world.summary(second) == SummaryResult(None, 0, 0, -1, -1)


def test_what_was_never_initialised_cannot_be_read_or_written(world: ShareWorld) -> None:
    second = KEY._replace(partition=1)
    assert world.read(second, leader_epoch=1) == ReadResult(
        refused(ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed.")
    )
    assert world.write(second) == StateResult(
        refused(ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed.")
    )
    assert world.summary(second) == SummaryResult(None, 0, 0, -1, -1)
    assert world.delete(second) == DONE
    assert world.last_records == ()


def test_a_deleted_share_partition_is_as_if_it_had_never_been(world: ShareWorld) -> None:
    world.read(KEY, leader_epoch=5)
    assert world.delete(KEY) == DONE
    assert world.last_records == (Snapshot(KEY, None),)
    assert world.initialize(KEY, state_epoch=0) == DONE
    assert world.read(KEY, leader_epoch=1) == ReadResult(None, 0, 0, ())


def test_a_negative_partition_is_refused_before_all_else(world: ShareWorld) -> None:
    key = KEY._replace(partition=-1)
    refusal = refused(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
    answers = (
        world.initialize(key),
        world.read(key),
        world.write(key),
        world.delete(key),
        world.summary(key),
    )
    assert {answer.refusal for answer in answers} == {refusal}


def test_the_topic_is_looked_for_last(world: ShareWorld) -> None:
    world.read(KEY, leader_epoch=5)
    del world.topics[TOPIC]
    unknown = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert world.write(KEY, leader_epoch=4).refusal == refused(ErrorCode.FENCED_LEADER_EPOCH)
    assert world.initialize(KEY, state_epoch=0).refusal == refused(ErrorCode.FENCED_STATE_EPOCH)
    answers = (
        world.initialize(KEY, state_epoch=1),
        world.read(KEY),
        world.write(KEY),
        world.delete(KEY),
        world.summary(KEY),
    )
    assert {answer.refusal for answer in answers} == {unknown}
    world.topics[TOPIC] = 2
    assert world.initialize(KEY._replace(partition=2)).refusal == unknown


def test_so_many_updates_are_followed_by_a_snapshot(world: ShareWorld) -> None:
    kinds = []
    for offset in range(10, 18):
        world.now_ms += 1
        world.write(KEY, StateBatch(offset, offset, 1, ACKNOWLEDGED), leader_epoch=7, complete=offset - 9)
        kinds += [type(record).__name__ for record in world.last_records]
    assert kinds == ["Update"] * 3 + ["Snapshot"] + ["Update"] * 3 + ["Snapshot"]

    [snapshot] = world.last_records
    assert isinstance(snapshot, Snapshot)
    assert snapshot.state == world.state.by_key[KEY].state
    assert snapshot.state.snapshot_epoch == 2
    assert snapshot.state.batches == (StateBatch(10, 17, 1, ACKNOWLEDGED),)
    assert (snapshot.state.create_timestamp_ms, snapshot.state.write_timestamp_ms) == (1_008, 1_008)


def test_batches_of_one_request_may_overlap(world: ShareWorld) -> None:
    world.write(KEY, StateBatch(10, 14, 1, ACKNOWLEDGED), StateBatch(12, 12, 2, AVAILABLE), complete=4)
    assert world.read(KEY).batches == (
        StateBatch(10, 11, 1, ACKNOWLEDGED),
        StateBatch(12, 12, 2, AVAILABLE),
        StateBatch(13, 14, 1, ACKNOWLEDGED),
    )


def test_batches_that_no_leader_writes_are_refused(world: ShareWorld) -> None:
    refusal = refused(ErrorCode.INVALID_REQUEST, "The state batches are not valid.")
    backwards = StateBatch(12, 11, 2, ACKNOWLEDGED)
    assert world.write(KEY, StateBatch(10, 19, 1, AVAILABLE), backwards).refusal == refusal

    over_each_other = [StateBatch(10, 10 + n, 30 - n, AVAILABLE) for n in range(MAX_OVERLAPS + 1)]
    assert world.write(KEY, *over_each_other).refusal == refusal
    assert world.write(KEY, *over_each_other[:-1], StateBatch(30, 30, 1, AVAILABLE)) == DONE

    many = [StateBatch(100 + 2 * n, 100 + 2 * n, 1, ACKNOWLEDGED) for n in range(MAX_STATE_BATCHES + 1)]
    assert world.write(KEY, *many).refusal == refusal
    assert world.write(KEY, *many[:-1]) == DONE
