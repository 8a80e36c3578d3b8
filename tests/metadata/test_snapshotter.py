"""When snapshots of the metadata are written, and what they stand for."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.controller.core.events import AllocateProducerIds, NewTopic
from pykafka_broker.log.disk.files import join
from pykafka_broker.metadata.snapshotter import SnapshotSettings
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.metadata import FOLDER, Node


async def test_snapshots_stand_for_the_log_before_them() -> None:
    node = Node(snapshots=SnapshotSettings(bytes_between_snapshots=10_000), segment_bytes=4_096)
    controller = await node.start()
    for number in range(200):
        await node.create_topics(NewTopic(f"t{number}", configs=(("retention.ms", "5"),)))
    await controller.ask(AllocateProducerIds(1, node.broker_epoch))
    await node.close()
    before = node.image
    snapshots = sorted(node.storage.snapshots())
    assert len(snapshots) == 3, "the first voters, and the two newest"
    assert node.log.state.log_start_offset == snapshots[1].end_offset > 0

    for damaged in (None, snapshots[2]):
        files = node.files.power_cut()
        if damaged is not None:
            del files.inodes[join(FOLDER, damaged.file_name)].data[-1:]
        after = Node(files)
        await after.replica.start()

        image = after.image
        assert (image.topics, image.configs, image.features) == (
            before.topics,
            before.configs,
            before.features,
        )
        assert image.next_producer_id == 1_000
        assert after.log.state.segments[0].base_offset > 0
        await after.close()


@pytest.mark.parametrize("clock_set_by_ms", [0, -3_600_000, 3_600_000])
async def test_the_first_change_after_an_hour_is_followed_by_a_snapshot(clock_set_by_ms: int) -> None:
    node = Node(snapshots=SnapshotSettings(interval_ms=3_600_000))
    await node.start()
    storage = node.storage
    node.clock.set_wall_clock(clock_set_by_ms)
    await node.clock.pass_time(3_599_999)
    await node.create_topics(NewTopic("a"))
    assert storage.snapshots() == [(0, 0)]
    await node.clock.pass_time(1)
    await node.create_topics(NewTopic("b"))
    await node.close()
    assert len(storage.snapshots()) == 2


async def test_a_stop_leaves_a_snapshot_when_the_next_start_would_have_much_to_read() -> None:
    node = Node(snapshots=SnapshotSettings(at_stop_bytes=5_000))
    await node.start()
    await node.create_topics(NewTopic("few"))
    await node.close()
    assert node.storage.snapshots() == [(0, 0)]

    after = Node(node.files.power_cut(), snapshots=SnapshotSettings(at_stop_bytes=5_000))
    await after.start(previous_broker_epoch=node.broker_epoch)
    await after.create_topics(NewTopic("many", num_partitions=200))
    end_offset = after.image.offset + 1
    await after.close()
    assert max(after.storage.snapshots()).end_offset == end_offset

    last = Node(after.files.power_cut(), snapshots=SnapshotSettings(at_stop_bytes=5_000))
    await last.replica.start()
    assert last.image.topics == after.image.topics
    assert last.storage.bytes_since_snapshot < 1_000
    await last.close()


async def test_a_snapshot_that_cannot_be_written_costs_nothing() -> None:
    node = Node(snapshots=SnapshotSettings(bytes_between_snapshots=1_000))
    await node.start()
    node.files.fail("write_file", errno.EIO, path=".checkpoint", times=100)
    for number in range(20):
        [result] = await node.create_topics(NewTopic(f"t{number}"))
        assert result.error is ErrorCode.NONE
    await node.close()
    assert node.storage.snapshots() == [(0, 0)]
    assert node.failures == []


async def test_an_old_snapshot_that_cannot_be_removed_neither_hides_nor_keeps_others() -> None:
    node = Node(snapshots=SnapshotSettings(bytes_between_snapshots=1_000))
    await node.start()
    for number in range(40):
        await node.create_topics(NewTopic(f"t{number}"))
        if number == 10:
            old = max(node.storage.snapshots())
            node.files.fail("remove", errno.EACCES, path=old.file_name, times=100)
    state = node.replica.host.state
    assert state is not None
    assert state.log.start_offset == node.log.state.log_start_offset > old.end_offset
    assert state.log.snapshots == node.storage.snapshot_files()
    assert [found.snapshot_id for found in state.log.snapshots][:1] == [old]
    assert len(state.log.snapshots) == 3, "this one, and the two newest"
    await node.close()
