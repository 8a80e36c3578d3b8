"""The controller role: a controller is active while the node leads, and goes on from what is committed."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.controller.core.events import AllocateProducerIds, CreateTopicResult, NewTopic
from pykafka_broker.controller.core.state import ControllerRules
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.log.disk.names import BOOTSTRAP_CHECKPOINT
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import control, metadata
from pykafka_broker.raft.snapshots import encode_snapshot
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.metadata import DATA, VERSION, Node


async def test_no_controller_is_active_before_the_node_leads() -> None:
    node = Node()
    assert await node.create_topics(NewTopic("early")) == (
        CreateTopicResult("early", ErrorCode.NOT_CONTROLLER),
    )


async def test_the_end_of_leadership_answers_those_who_wait_and_those_who_come() -> None:
    node = Node()
    controller = await node.start()
    node.free.clear()
    waiting = asyncio.ensure_future(node.create_topics(NewTopic("orders")))
    await settle()

    node.role.end(KafkaError(ErrorCode.NOT_CONTROLLER))

    refused = (CreateTopicResult("orders", ErrorCode.NOT_CONTROLLER),)
    assert await waiting == refused
    assert await node.create_topics(NewTopic("orders")) == refused
    with pytest.raises(KafkaError) as no_controller:
        await controller.ask(AllocateProducerIds(1, node.broker_epoch))
    assert no_controller.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_controller_that_begins_again_goes_on_from_what_was_committed() -> None:
    node = Node()
    await node.start()
    await node.create_topics(NewTopic("before"))
    node.free.clear()
    undecided = asyncio.ensure_future(node.create_topics(NewTopic("meanwhile")))
    await settle()
    node.role.end(KafkaError(ErrorCode.NOT_CONTROLLER))
    await undecided
    node.free.set()
    await settle()
    assert sorted(node.image.topics) == ["before", "meanwhile"], "it was committed after all"

    node.role.begin(node.replica.host)

    results = [
        (await node.create_topics(NewTopic(name)))[0].error for name in ("before", "meanwhile", "after")
    ]
    taken = ErrorCode.TOPIC_ALREADY_EXISTS
    assert results == [taken, taken, ErrorCode.NONE]
    assert sorted(node.image.topics) == ["after", "before", "meanwhile"]


async def test_a_log_that_has_begun_needs_no_bootstrap_records() -> None:
    node = Node()
    await node.start()
    await node.close()
    after = Node(node.files.killed())
    after.files.remove(f"{DATA}/{BOOTSTRAP_CHECKPOINT}")
    await after.start(previous_broker_epoch=node.broker_epoch)
    assert after.image.features == node.image.features


async def test_bootstrap_records_for_another_version_are_refused_before_the_node_leads() -> None:
    node = Node()
    level = metadata.FeatureLevelRecord(name="metadata.version", feature_level=99)
    values = [encode_record(level, VERSION)]
    bootstrap = encode_snapshot(values, None, last_timestamp_ms=0, now_ms=0)
    node.files.replace_file(f"{DATA}/{BOOTSTRAP_CHECKPOINT}", bootstrap, sync=True)
    with pytest.raises(CorruptMetadataError, match=r"metadata\.version at level 99"):
        await node.replica.start()
    assert node.log.state.log_end_offset == 0, "not even its election is in the log"


async def test_raft_may_put_control_records_between_two_decisions() -> None:
    node = Node()
    await node.start()
    voters = control.KRaftVersionRecord(version=0, kraft_version=1)
    node.storage.append_control([voters], epoch=1, now_ms=0)

    await node.create_topics(NewTopic("orders"))
    after = Node(node.files.killed())
    await after.replica.start()

    assert node.image.offset == node.log.state.log_end_offset - 1
    assert after.image.topics == node.image.topics


async def test_what_is_published_is_what_was_decided_and_the_node_holds_it_once() -> None:
    """What the controller decides on is what followers replay: the law, over a real log."""
    node = Node()
    await node.start()
    node.free.clear()
    creations = [asyncio.ensure_future(node.create_topics(NewTopic(f"t{number}"))) for number in range(5)]
    await settle()
    decided = node.role.active._shard.state.image
    assert len(decided.topics) == 5
    assert not node.image.topics

    node.free.set()
    await asyncio.gather(*creations)

    assert node.image == decided
    assert node.role.active._shard.state.image is node.image, "one image in memory"


def test_a_role_reads_nothing_before_an_election() -> None:
    clock = WallTimers(VirtualClock())
    read: list[str] = []

    def read_bootstrap() -> tuple[object, ...]:
        read.append("bootstrap.checkpoint")
        return tuple(bootstrap_records())

    role = ControllerRole(
        MetadataPublisher("c"), ControllerRules(1, "c"), clock, read_bootstrap=read_bootstrap
    )
    assert read == []
    role.prepare()
    assert read == ["bootstrap.checkpoint"]
