"""Snapshots of idle share partitions, cuts of the log, and topics that are gone."""

from __future__ import annotations

from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import PruneLog
from pykafka_broker.coordinator.share.core.housekeeping import COLD_BATCH_BYTES
from pykafka_broker.coordinator.share.core.records import Snapshot
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from tests.support.shares import ShareWorld

TOPIC = b"\x11" * 16
MINUTE_MS = 60_000
FIRST, SECOND = (SharePartitionKey("workers", TOPIC, partition) for partition in range(2))


def world_with(*keys: SharePartitionKey, config: ShareCoordinatorConfig | None = None) -> ShareWorld:
    world = ShareWorld(config or ShareCoordinatorConfig(snapshot_update_records_per_snapshot=3), now_ms=1_000)
    world.topics[TOPIC] = 100_000
    world.submit(events.Loaded(world.now_ms))
    for key in keys:
        world.initialize(key)
    return world


def write(world: ShareWorld, key: SharePartitionKey, times: int) -> None:
    for offset in range(times):
        world.write(key, StateBatch(offset, offset, 1, 2), complete=1)


def test_what_is_before_the_oldest_of_the_newest_snapshots_is_deleted() -> None:
    config = ShareCoordinatorConfig(
        snapshot_update_records_per_snapshot=3, state_topic_prune_interval_ms=MINUTE_MS
    )
    world = world_with(FIRST, SECOND, config=config)
    write(world, FIRST, 4)
    assert (world.end_offset, world.state.redundant_offset()) == (6, 1)
    write(world, SECOND, 4)
    world.advance(MINUTE_MS)
    assert world.prunes == [PruneLog(5)]

    answers = world.read(FIRST), world.read(SECOND)
    world.prune()
    assert min(world.log) == 5
    after = world.reloaded()
    assert (after.read(FIRST), after.read(SECOND)) == answers


def test_an_idle_share_partition_does_not_hold_up_the_log() -> None:
    world = world_with(FIRST, SECOND)
    write(world, SECOND, 4)
    world.advance(5 * MINUTE_MS - 1)
    write(world, FIRST, 1)
    before = world.state.by_key[FIRST].state
    world.advance(1)

    after = world.state.by_key[FIRST].state
    assert after == before._replace(
        snapshot_epoch=before.snapshot_epoch + 1, write_timestamp_ms=1_000 + 5 * MINUTE_MS
    )
    assert world.state.redundant_offset() == 7


def test_where_all_are_idle_nothing_is_written_any_more() -> None:
    world = world_with(FIRST, SECOND)
    world.advance(5 * MINUTE_MS)
    written = world.end_offset
    assert written == 4
    world.advance(24 * 60 * MINUTE_MS)
    assert world.end_offset == written


def test_one_that_is_not_idle_gives_all_others_snapshots() -> None:
    world = world_with(FIRST, SECOND)
    world.advance(5 * MINUTE_MS)
    write(world, FIRST, 4)
    world.advance(5 * MINUTE_MS)
    assert [key for _, key in sorted((at, record.key) for at, record in world.log.items())][-1] == SECOND


def test_very_many_idle_share_partitions_get_their_snapshots_in_slices() -> None:
    keys = [SharePartitionKey("w" * 200, TOPIC, partition) for partition in range(3_000)]
    world = world_with(*keys)
    world.write_sizes.clear()
    world.advance(5 * MINUTE_MS)
    slices = world.write_sizes
    assert len(slices) > 1
    assert max(slices) * 320 <= COLD_BATCH_BYTES + 640
    assert sum(slices) == 3_000
    assert {entry.state.write_timestamp_ms for entry in world.state.by_key.values()} == {world.now_ms}


def test_nothing_is_looked_after_while_share_groups_are_disabled() -> None:
    world = world_with(
        FIRST, config=ShareCoordinatorConfig(snapshot_update_records_per_snapshot=1, is_enabled=False)
    )
    write(world, FIRST, 6)
    written = world.end_offset
    world.advance(60 * MINUTE_MS)
    assert (world.end_offset, world.prunes) == (written, [])

    world.config = world.config._replace(is_enabled=True)
    world.advance(5 * MINUTE_MS)
    assert world.prunes != []


def test_of_deleted_share_partitions_nothing_is_kept() -> None:
    world = world_with(FIRST, SECOND)
    world.delete(SECOND)
    assert world.state.redundant_offset() is None, "the first snapshot is at the start of the log"
    world.delete(FIRST)
    assert world.state.redundant_offset() == 3
    world.initialize(FIRST)
    assert world.state.redundant_offset() == 4


def test_share_partitions_of_a_deleted_topic_are_forgotten() -> None:
    other = SharePartitionKey("workers", b"\x22" * 16, 0)
    world = world_with(FIRST, SECOND)
    world.topics[other.topic_id] = 1
    world.initialize(other)
    world.submit(events.TopicsDeleted(frozenset({TOPIC, b"\x33" * 16})))
    assert set(world.last_records) == {Snapshot(FIRST, None), Snapshot(SECOND, None)}
    assert list(world.state.by_key) == [other]
    world.submit(events.TopicsDeleted(frozenset({TOPIC})))
    assert world.last_records == ()
