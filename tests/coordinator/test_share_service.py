"""The share coordinator's service: routes, its topic's log, settings, and partitions that come and go."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pykafka_broker.cluster.image import ClusterImage, PartitionRegistration, TopicImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import ReadResult, Refusal, StateResult, SummaryResult
from pykafka_broker.coordinator.share.core.records import decode_record
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig
from pykafka_broker.coordinator.share.keys import coordinator_key, share_partition
from pykafka_broker.coordinator.share.settings import ShareCoordinatorSettings, share_config
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.testing.clock import settle
from tests.support.share_coordinator import KEY, PARTITIONS, TOPIC, Coordinator

DONE = StateResult()
MINUTE_MS = 60_000


def acknowledged(first: int, last: int) -> StateBatch:
    return StateBatch(first, last, 1, 2)


# ---- routes ----


def test_a_share_partition_in_words() -> None:
    words = "work:ers:EREREREREREREREREREREQ:7"
    assert share_partition(words) == SharePartitionKey("work:ers", TOPIC, 7)
    assert coordinator_key(SharePartitionKey("work:ers", TOPIC, 7)) == words
    assert share_partition("g:EREREREREREREREREREREQ==:-3").partition == -3


@pytest.mark.parametrize(
    "words", ["", "::", "g:7", "g:EREREREREREREREREREREQ:", "g:EREREREREREREREREREREQ:2147483648", "g:x:0"]
)
def test_words_that_name_no_share_partition(words: str) -> None:
    with pytest.raises(ValueError):
        share_partition(words)


async def test_the_state_is_where_javas_hash_of_the_words_says() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    expected = string_hash_abs("workers:EREREREREREREREREREREQ:0") % PARTITIONS
    assert coordinator.partition == expected
    assert [partition for partition, log in coordinator.logs.items() if log] == [expected]


# ---- answers without a shard ----


@pytest.mark.parametrize(
    ("refused", "deed", "result"),
    [
        (refusals.initialize, "initialize share group state", StateResult),
        (refusals.read, "read share group state", ReadResult),
        (refusals.write, "write share group state", StateResult),
        (refusals.delete, "delete share group state", StateResult),
        (refusals.summary, "read share group state summary", SummaryResult),
    ],
)
def test_every_request_says_what_could_not_be_done(refused: Any, deed: str, result: Any) -> None:
    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    refusal = Refusal(ErrorCode.NOT_COORDINATOR, f"Unable to {deed}: {error.message}")
    assert refused(error) == result(refusal)


async def test_a_partition_that_moved_away_is_not_coordinated_here() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    coordinator.shards.unload(coordinator.partition)
    refusal = (await coordinator.read()).refusal
    assert refusal is not None
    assert refusal.error == ErrorCode.NOT_COORDINATOR


async def test_an_answer_waits_for_its_commit_but_not_for_ever() -> None:
    coordinator = await Coordinator.serving()
    coordinator.commits_at_once = False
    initializing = asyncio.ensure_future(coordinator.initialize())
    await settle()
    assert not initializing.done()
    coordinator.shards.on_high_watermark(coordinator.partition, 1)
    assert await initializing == DONE

    writing = asyncio.ensure_future(coordinator.write(acknowledged(0, 1)))
    await coordinator.clock.pass_time(5_000)
    refusal = (await writing).refusal
    assert refusal is not None
    assert refusal.error == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_log_that_takes_nothing_changes_nothing() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    coordinator.disk_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    refusal = (await coordinator.write(acknowledged(0, 1))).refusal
    assert refusal is not None
    assert refusal.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (await coordinator.read()).batches == ()

    coordinator.disk_error = None
    assert await coordinator.write(acknowledged(0, 1)) == DONE
    assert (await coordinator.read()).batches == (acknowledged(0, 1),)


# ---- the log ----


async def test_another_broker_finds_everything_in_the_log() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    for offset in range(8):
        await coordinator.write(acknowledged(offset, offset))
    before = await coordinator.read()
    assert before.batches == (acknowledged(0, 7),)
    await coordinator.load_all()
    assert await coordinator.read() == before


async def test_redundant_records_are_deleted_and_not_missed() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    for offset in range(8):
        await coordinator.write(acknowledged(offset, offset))
    before = await coordinator.read()
    await coordinator.clock.pass_time(5 * MINUTE_MS)
    assert coordinator.starts[coordinator.partition] == 9, "the snapshot of an idle share partition"
    await coordinator.load_all()
    assert await coordinator.read() == before


async def test_the_log_is_cut_only_where_the_records_that_allow_it_are_committed() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    for offset in range(3):
        await coordinator.write(acknowledged(offset, offset))
    coordinator.commits_at_once = False
    snapshot = asyncio.ensure_future(coordinator.write(acknowledged(3, 3)))
    await coordinator.clock.pass_time(5 * MINUTE_MS)
    assert coordinator.starts[coordinator.partition] == 0
    coordinator.shards.on_high_watermark(coordinator.partition, coordinator.ends[coordinator.partition])
    assert coordinator.starts[coordinator.partition] > 0
    assert (await snapshot).refusal is not None, "it has waited for longer than it may"


async def test_a_log_that_cannot_be_cut_is_cut_later(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    for offset in range(4):
        await coordinator.write(acknowledged(offset, offset))
    coordinator.disk_error = KafkaError(ErrorCode.POLICY_VIOLATION)
    with caplog.at_level(logging.ERROR):
        await coordinator.clock.pass_time(5 * MINUTE_MS)
    assert "Exception while deleting records in __share_group_state" in caplog.text
    coordinator.disk_error = None
    await coordinator.clock.pass_time(5 * MINUTE_MS)
    assert coordinator.starts[coordinator.partition] > 0


async def test_records_are_compressed_as_configured() -> None:
    coordinator = await Coordinator.serving(codec=Codec.GZIP)
    await coordinator.initialize()
    [batch] = coordinator.logs[coordinator.partition]
    assert [header.codec for _, header in iter_batches(batch)] == [Codec.GZIP]
    await coordinator.load_all()
    assert (await coordinator.read()).refusal is None


# ---- configuration and metadata ----

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


def test_settings_are_those_of_the_broker_and_the_level_of_the_feature() -> None:
    assert share_config(BrokerConfig(NODE), 1) == ShareCoordinatorConfig(500, 300_000, 300_000, True)
    changed = BrokerConfig(
        NODE
        | {
            "share.coordinator.snapshot.update.records.per.snapshot": "7",
            "share.coordinator.cold.partition.snapshot.interval.ms": "8",
            "share.coordinator.state.topic.prune.interval.ms": "9",
        }
    )
    assert share_config(changed, 0) == ShareCoordinatorConfig(7, 8, 9, False)


async def test_the_settings_bring_the_level_and_the_deleted_topics() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    settings = ShareCoordinatorSettings(coordinator.service, BrokerConfig(NODE))
    assert settings.load_buffer_bytes() == 5 * 1024 * 1024
    orders = TopicImage("orders", TOPIC, {0: PartitionRegistration(0, (1,), (1,), leader=1)})
    begun = ClusterImage(
        topics={"orders": orders}, topic_names={TOPIC: "orders"}, features={"share.version": 1}
    )
    settings.on_image(ClusterImage(), begun)
    assert coordinator.service.config == ShareCoordinatorConfig(500, 300_000, 300_000, True)
    assert (await coordinator.read()).refusal is None

    # The name is there again, the topic is another one.
    anew = orders._replace(topic_id=b"\x22" * 16)
    after = ClusterImage(topics={"orders": anew}, topic_names={anew.topic_id: "orders"})
    settings.on_image(begun, after)
    assert not coordinator.service.config.is_enabled
    refusal = (await coordinator.read()).refusal
    assert refusal is not None
    assert refusal.error == ErrorCode.INVALID_REQUEST
    [*_, newest] = read_records(coordinator.logs[coordinator.partition][-1])
    assert newest.key is not None
    assert newest.value is None
    forgotten = decode_record(bytes(newest.key), None)
    assert forgotten is not None
    assert forgotten.key == KEY


async def test_topics_that_are_deleted_while_a_log_is_read_are_forgotten_too() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    partition = coordinator.partition
    loading = coordinator.shards.load(partition, coordinator.left(partition), leader_epoch=1)
    coordinator.service.forget_topics(frozenset({TOPIC}))
    assert await loading
    refusal = (await coordinator.read()).refusal
    assert refusal is not None
    assert refusal.error == ErrorCode.INVALID_REQUEST


async def test_a_log_that_takes_no_deletions_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = await Coordinator.serving()
    await coordinator.initialize()
    coordinator.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with caplog.at_level(logging.ERROR):
        coordinator.service.forget_topics(frozenset({TOPIC}))
    assert "cleanup deleted topics" in caplog.text
    assert (await coordinator.read()).refusal is None
