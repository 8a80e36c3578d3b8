"""The controller's shell: answers after commit, images before answers, time-outs, restarts, a broken disk."""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.cluster.events import (
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    FeatureUpdate,
    NewConfigs,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
)
from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import Endpoint, ResourceType
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.controller.controller import Controller
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.format import METADATA_FOLDER, NewNode, format_storage
from pykafka_broker.raft.storage import METADATA_TOPIC_ID, RaftStorage
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles

DATA = "/data"
ENDPOINTS = {"CONTROLLER": ("localhost", 9093)}
ZERO = bytes(16)


class Node:
    """A controller over files in memory; `hold` keeps syncs, and so commits, back."""

    def __init__(
        self, files: MemoryFiles | None = None, *, segment_bytes: int = 1 << 26, **options: int
    ) -> None:
        config = LogConfig(segment_bytes=segment_bytes, cleanup_policy=frozenset())
        self.files = MemoryFiles() if files is None else files
        self.clock = VirtualClock()
        self.failures: list[Exception] = []
        self.free = asyncio.Event()
        self.free.set()
        if files is None:
            values = tuple(encode_record(record, 30) for record in bootstrap_records())
            format_storage(self.files, [DATA], NewNode(1, values, ENDPOINTS), now_ms=0)
        meta = decode_meta_properties(self.files.read_file(f"{DATA}/meta.properties"))
        self.directory_id = meta.directory_id or b""
        folder = join(DATA, METADATA_FOLDER)
        environment = Environment(self.files)
        if any(entry.name.endswith(".log") for entry in self.files.entries(folder)):
            log = open_log(
                environment,
                LogIdentity(folder, "__cluster_metadata", 0, METADATA_TOPIC_ID),
                config,
                clean=False,
                now_ms=0,
            )
        else:
            log = create_log(
                environment, LogIdentity(folder, "__cluster_metadata", 0, METADATA_TOPIC_ID), config
            )
        self.log = log
        self.controller = Controller(
            RaftStorage(self.files, log),
            Voter(ReplicaKey(1, self.directory_id), ENDPOINTS),
            ControllerRules(1, meta.cluster_id or ""),
            files=self.files,
            metadata_directory=DATA,
            scheduler=WallTimers(self.clock),
            run_blocking=self._run_blocking,
            on_failure=self.failures.append,
            **options,
        )

    async def _run_blocking(self, job):
        await self.free.wait()
        job()

    async def start(self, previous_broker_epoch: int = -1) -> Controller:
        """A controller whose broker is ready."""
        await self.controller.start()
        self.broker_epoch = await self.controller.register_broker(
            listeners={"PLAINTEXT": Endpoint("localhost", 9092)},
            directories=[self.directory_id],
            previous_broker_epoch=previous_broker_epoch,
        )
        await self.controller.unfence_broker(self.broker_epoch)
        return self.controller

    def records(self) -> list[object]:
        """All metadata records in the log."""
        batches = self.controller.raft.storage.read(0, self.log.state.log_end_offset)
        return [decode_record(value) for batch in batches for value in batch.values or ()]


async def test_a_new_log_begins_as_kafkas_does():
    node = Node()
    await node.controller.start()
    assert node.records() == [
        m.BeginTransactionRecord(name="Bootstrap records"),
        *bootstrap_records(),
        m.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        m.EndTransactionRecord(),
    ]
    image = node.controller.image
    assert image.metadata_version == 30
    assert image.config(ResourceType.BROKER, "") == {"min.insync.replicas": "1"}
    assert image.offset == node.log.state.log_end_offset - 1


async def test_a_topic_is_answered_when_it_is_on_disk_and_shown_before_the_answer():
    node = Node()
    controller = await node.start()
    order = []
    controller.subscribe(lambda old, new: order.append(("image", sorted(new.topics), sorted(old.topics))))
    node.free.clear()
    creation = asyncio.ensure_future(controller.create_topics([NewTopic("orders")]))
    creation.add_done_callback(lambda _: order.append("answer"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (order, creation.done(), dict(controller.image.topics)) == ([], False, {})

    node.free.set()
    [result] = await creation
    await asyncio.sleep(0)

    assert order == [("image", ["orders"], []), "answer"]
    assert (result.error, result.num_partitions, any(result.topic_id)) == (ErrorCode.NONE, 1, True)
    assert controller.image.topics["orders"].topic_id == result.topic_id


async def test_decisions_build_on_what_is_not_committed_yet():
    node = Node()
    controller = await node.start()
    node.free.clear()
    twice = [asyncio.ensure_future(controller.create_topics([NewTopic("orders")])) for _ in range(2)]
    await asyncio.sleep(0)
    node.free.set()
    results = [result for [result] in await asyncio.gather(*twice)]
    assert [result.error for result in results] == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


async def test_a_subscriber_that_unsubscribes_hears_no_more():
    controller = await Node().start()
    seen = []
    unsubscribe = controller.subscribe(lambda old, new: seen.append(new))
    unsubscribe()
    await controller.create_topics([NewTopic("orders")])
    assert seen == []


# -- time ------------------------------------------------------------------------------------------------


async def test_whoever_has_no_time_gets_a_timeout_and_no_topic():
    controller = await Node().start()
    timed_out = CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT)
    assert await controller.create_topics([NewTopic("orders")], timeout_ms=0) == (timed_out,)
    assert not controller.image.topics
    assert await controller.delete_topics([("orders", ZERO)], timeout_ms=0) == (
        DeleteTopicResult("orders", ZERO, ErrorCode.REQUEST_TIMED_OUT),
    )
    assert await controller.create_partitions([NewPartitions("orders", 2)], timeout_ms=0) == (
        CreatePartitionsResult("orders", ErrorCode.REQUEST_TIMED_OUT),
    )


async def test_a_change_that_takes_too_long_is_answered_in_time_and_may_still_happen():
    node = Node()
    controller = await node.start()
    node.free.clear()
    creation = asyncio.ensure_future(controller.create_topics([NewTopic("orders")], timeout_ms=1_000))
    await node.clock.pass_time(999)
    assert not creation.done()
    await node.clock.pass_time(1)
    assert await creation == (CreateTopicResult("orders", ErrorCode.REQUEST_TIMED_OUT),)

    node.free.set()
    await controller.close()
    assert list(controller.image.topics) == ["orders"]


async def test_a_deadline_that_is_met_leaves_no_timer_behind():
    node = Node()
    controller = await node.start()
    before = node.clock.pending_timers
    await controller.create_topics([NewTopic("orders")], timeout_ms=1_000)
    assert node.clock.pending_timers == before


# -- the calls -------------------------------------------------------------------------------------------


async def test_topics_grow_and_go():
    controller = await Node().start()
    await controller.create_topics([NewTopic("orders")])
    assert await controller.create_partitions([NewPartitions("orders", 3)]) == (
        CreatePartitionsResult("orders"),
    )
    assert len(controller.image.topics["orders"].partitions) == 3
    topic_id = controller.image.topics["orders"].topic_id
    assert await controller.delete_topics([("orders", ZERO)]) == (DeleteTopicResult("orders", topic_id),)
    assert not controller.image.topics


async def test_a_request_that_is_refused_as_a_whole_is_refused_topic_by_topic():
    controller = await Node().start()
    topics = [NewTopic("a", num_partitions=6_000), NewTopic("b", num_partitions=6_000)]
    text = "Excessively large number of partitions per request."
    assert await controller.create_topics(topics) == (
        CreateTopicResult("a", ErrorCode.POLICY_VIOLATION, text),
        CreateTopicResult("b", ErrorCode.POLICY_VIOLATION, text),
    )


async def test_configs_are_answered_in_the_order_asked_whoever_refuses_them():
    controller = await Node().start()
    await controller.create_topics([NewTopic("orders")])

    def change(kind, name, *keys):
        return ConfigChange(kind, name, tuple((key, ConfigOperation.SET, "1") for key in keys))

    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    results = await controller.incremental_alter_configs(
        [
            change(topic, "nope", "a"),
            change(broker, "7", "a"),
            change(topic, "orders", "a"),
            change(broker, "1", "a"),
            change(broker, "1", "b"),
        ]
    )

    twice = AlterConfigsResult(
        broker, "1", ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
    )
    assert results == (
        AlterConfigsResult(
            topic, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."
        ),
        AlterConfigsResult(
            broker, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"
        ),
        AlterConfigsResult(topic, "orders"),
        twice,
        twice,
    )
    assert controller.image.config(topic, "orders") == {"a": "1"}
    await controller.alter_configs([NewConfigs(topic, "orders", (("b", "2"),))])
    assert controller.image.config(topic, "orders") == {"b": "2"}


async def test_producer_ids_go_on_after_a_crash():
    node = Node()
    controller = await node.start()
    assert await controller.allocate_producer_ids(node.broker_epoch) == ProducerIdBlock(0, 1_000)
    after = Node(node.files.power_cut())
    controller = await after.start()
    assert await controller.allocate_producer_ids(after.broker_epoch) == ProducerIdBlock(1_000, 1_000)
    with pytest.raises(KafkaError) as refused:
        await controller.allocate_producer_ids(node.broker_epoch)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_controllers_register_features_are_updated_brokers_are_forgotten():
    node = Node()
    controller = await node.start()
    await controller.register_controller({"CONTROLLER": Endpoint("localhost", 9093)})
    assert controller.image.controllers[1].listeners == {"CONTROLLER": Endpoint("localhost", 9093)}
    with pytest.raises(KafkaError, match="does not support this feature"):
        await controller.update_features([FeatureUpdate("nonsense.version", 1)])
    await controller.unregister_broker(1)
    assert controller.image.brokers == {}


# -- stopping and starting -------------------------------------------------------------------------------


async def test_everything_acknowledged_survives_a_power_cut():
    node = Node()
    controller = await node.start()
    topics = [NewTopic(f"t{number}", configs=(("retention.ms", "5"),)) for number in range(20)]
    await asyncio.gather(*(controller.create_topics([topic]) for topic in topics))
    before = controller.image

    after = Node(node.files.power_cut())
    await after.controller.start()

    image = after.controller.image
    assert (image.topics, image.configs, image.features) == (before.topics, before.configs, before.features)
    assert (image.brokers, image.epoch) == (before.brokers, 2)


async def test_a_clean_stop_and_start_lead_again_without_a_doubt():
    node = Node()
    controller = await node.start()
    await controller.create_topics([NewTopic("orders")])
    await controller.shut_down_broker(node.broker_epoch)
    assert controller.image.topics["orders"].partitions[0].leader == -1
    await controller.close()

    after = Node(node.files.killed())
    controller = await after.start(previous_broker_epoch=node.broker_epoch)

    partition = controller.image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)


async def test_a_transaction_that_a_crash_left_open_is_aborted():
    node = Node()
    controller = await node.start()
    half = [m.BeginTransactionRecord(name="half"), m.TopicRecord(name="ghost", topic_id=b"g" * 16)]
    controller.raft.append([encode_record(record, 30) for record in half])
    await controller.close()

    after = Node(node.files.killed())
    controller = await after.start()

    assert "ghost" not in controller.image.topics
    assert m.AbortTransactionRecord(reason="Controller failover") in after.records()
    await controller.create_topics([NewTopic("orders")])
    assert list(controller.image.topics) == ["orders"]


async def test_ten_thousand_partitions_and_more_leave_and_come_back():
    node = Node()
    controller = await node.start()
    for number in range(3):
        await controller.create_topics([NewTopic(f"t{number}", num_partitions=4_000)])
    await controller.shut_down_broker(node.broker_epoch)
    await controller.close()

    after = Node(node.files.killed())
    controller = await after.start(previous_broker_epoch=node.broker_epoch)

    leaders = {p.leader for topic in controller.image.topics.values() for p in topic.partitions.values()}
    assert leaders == {1}


async def test_snapshots_stand_for_the_log_before_them():
    node = Node(bytes_between_snapshots=10_000, segment_bytes=4_096)
    controller = await node.start()
    for number in range(200):
        await controller.create_topics([NewTopic(f"t{number}", configs=(("retention.ms", "5"),))])
    await controller.allocate_producer_ids(node.broker_epoch)
    await controller.close()
    before = controller.image
    snapshots = sorted(node.controller.raft.storage.snapshots())
    assert len(snapshots) == 3, "the first voters, and the two newest"
    assert node.log.state.log_start_offset == snapshots[1].end_offset > 0
    folder = join(DATA, METADATA_FOLDER)

    for damaged in (None, snapshots[2]):
        files = node.files.power_cut()
        if damaged is not None:
            del files.inodes[join(folder, damaged.file_name)].data[-1:]
        after = Node(files)
        await after.controller.start()

        image = after.controller.image
        assert (image.topics, image.configs, image.features) == (
            before.topics,
            before.configs,
            before.features,
        )
        assert image.next_producer_id == 1_000
        assert after.log.state.segments[0].base_offset > 0
        await after.controller.close()


async def test_the_first_change_after_an_hour_is_followed_by_a_snapshot():
    node = Node(snapshot_interval_ms=3_600_000)
    controller = await node.start()
    storage = controller.raft.storage
    await node.clock.pass_time(3_599_999)
    await controller.create_topics([NewTopic("a")])
    assert storage.snapshots() == [(0, 0)]
    await node.clock.pass_time(1)
    await controller.create_topics([NewTopic("b")])
    await controller.close()
    assert len(storage.snapshots()) == 2


async def test_a_stop_leaves_a_snapshot_when_the_next_start_would_have_much_to_read():
    node = Node(snapshot_at_stop_bytes=5_000)
    controller = await node.start()
    await controller.create_topics([NewTopic("few")])
    await controller.close()
    assert controller.raft.storage.snapshots() == [(0, 0)]

    after = Node(node.files.power_cut(), snapshot_at_stop_bytes=5_000)
    controller = await after.start(previous_broker_epoch=node.broker_epoch)
    await controller.create_topics([NewTopic("many", num_partitions=200)])
    end_offset = controller.image.offset + 1
    await controller.close()
    assert max(controller.raft.storage.snapshots()).end_offset == end_offset

    last = Node(after.files.power_cut(), snapshot_at_stop_bytes=5_000)
    await last.controller.start()
    assert last.controller.image.topics == controller.image.topics
    assert last.controller.raft.storage.bytes_since_snapshot < 1_000
    await last.controller.close()


async def test_a_snapshot_that_cannot_be_written_costs_nothing():
    node = Node(bytes_between_snapshots=1_000)
    controller = await node.start()
    node.files.fail("write_file", errno.EIO, path=".checkpoint", times=100)
    for number in range(20):
        [result] = await controller.create_topics([NewTopic(f"t{number}")])
        assert result.error is ErrorCode.NONE
    await controller.close()
    assert node.controller.raft.storage.snapshots() == [(0, 0)]
    assert node.failures == []


async def test_after_close_nothing_is_begun():
    controller = await Node().start()
    await controller.close()
    assert await controller.create_topics([NewTopic("orders")]) == (
        CreateTopicResult("orders", ErrorCode.NOT_CONTROLLER, "The controller is shutting down."),
    )


async def test_a_disk_that_fails_answers_everybody_and_tells_the_node():
    node = Node()
    controller = await node.start()
    node.files.fail("sync", errno.EIO, path=".log")

    [result] = await controller.create_topics([NewTopic("orders")])

    assert result.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(node.failures) == 1
    assert not controller.image.topics


async def test_a_disk_that_fails_at_the_start_stops_the_start():
    node = Node()
    node.files.fail("sync", errno.EIO, path=".log")
    with pytest.raises(KafkaError):
        await node.controller.start()
