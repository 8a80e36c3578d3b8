"""Compaction as clients see it: keys, the groups' own topic, settings that change while running."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.clock import NOW
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import BROKER_RESOURCE, TOPIC_RESOURCE, User
from tests.apis.transacting import Producer

SETTINGS = {"offsets.topic.num.partitions": "1", "log.cleaner.backoff.ms": "1000"}


async def produce(user: User, topic: str, *records: tuple[bytes | None, bytes | None]) -> ErrorCode:
    batch = build_batch([(NOW, key, value, ()) for key, value in records])
    data = producing.PartitionProduceData(index=0, records=batch)
    request = producing.ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[producing.TopicProduceData(name=topic, partition_data=[data])]
    )
    answer: Any = await user.send(request, 12)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


async def fill(user: User, topic: str, count: int) -> None:
    for number in range(count):
        record = b"%d" % (number % 3), b"%d" % number + bytes(200)
        assert await produce(user, topic, record) == ErrorCode.NONE


async def cleaned(home: Home) -> None:
    for _ in range(3):
        await home.pass_time(1_000)
        await until(lambda: not home.broker.node.logs.cleaner.is_at_work)


async def numbers(user: User, topic: str) -> list[int]:
    return [int((value or b"").rstrip(b"\0")) for value in await user.values(topic)]


async def test_a_compacted_topic_keeps_the_newest_of_every_key_also_over_restarts() -> None:
    home = Home(SETTINGS)
    async with home.running() as user:
        await user.create_topic(
            "orders",
            cleanup_policy="compact",
            internal_segment_bytes="1000",
            min_cleanable_dirty_ratio="0.01",
        )
        await fill(user, "orders", 60)
        await cleaned(home)
        found = await numbers(user, "orders")
        assert len(found) < 12
        assert found[-3:] == [57, 58, 59]
    async with home.running() as user:
        assert await numbers(user, "orders") == found
        await fill(user, "orders", 60)
        await cleaned(home)
        assert len(await numbers(user, "orders")) < 12


async def test_records_without_a_key_are_refused() -> None:
    async with Home().running() as user:
        await user.create_topic("orders", cleanup_policy="compact")
        assert await produce(user, "orders", (b"k", b"v"), (None, b"v")) == ErrorCode.INVALID_RECORD
        assert await produce(user, "orders", (b"k", b"v")) == ErrorCode.NONE
        await user.alter_topic("orders", cleanup_policy="delete")
        assert await produce(user, "orders", (None, b"v")) == ErrorCode.NONE


async def test_a_topic_can_become_compacted_and_the_cleaners_settings_are_live() -> None:
    home = Home({**SETTINGS, "log.cleaner.min.cleanable.ratio": "0.99"})
    async with home.running() as user:
        await user.create_topic("orders", internal_segment_bytes="1000")
        await fill(user, "orders", 30)
        await cleaned(home)
        assert len(await numbers(user, "orders")) == 30

        await user.alter_topic("orders", cleanup_policy="compact")
        await cleaned(home)
        kept = await numbers(user, "orders")
        assert len(kept) < 10

        await fill(user, "orders", 8)
        await cleaned(home)
        assert len(await numbers(user, "orders")) == len(kept) + 8
        await user.alter_broker(log_cleaner_min_cleanable_ratio="0.1")
        assert await user.config(TOPIC_RESOURCE, "orders", "min.cleanable.dirty.ratio") == "0.1"
        await cleaned(home)
        assert len(await numbers(user, "orders")) < len(kept) + 8


async def test_the_number_of_cleaner_threads_does_not_leap() -> None:
    home = Home(SETTINGS)
    async with home.running() as user:
        for threads in ("3", "0"):
            refused = await user.try_to_alter(BROKER_RESOURCE, "", log_cleaner_threads=threads)
            assert refused == ErrorCode.INVALID_REQUEST
        await user.alter_broker(log_cleaner_threads="2")
        assert home.broker.node.logs.cleaner.settings.threads == 2


def folder_bytes(home: Home, name: str) -> int:
    """What a partition's folder takes on the disk, whatever the files are called."""
    return sum(len(inode.data) for path, inode in home.files.inodes.items() if f"/{name}/" in path)


async def test_the_groups_own_topic_shrinks_on_the_disk_and_no_commit_of_any_group_is_lost() -> None:
    home = Home({**SETTINGS, "log.segment.delete.delay.ms": "1000"})
    groups = [f"readers-{number}" for number in range(8)]
    async with home.running() as user:
        await user.create_topic("orders", partitions=3)
        await user.find_coordinator("readers")
        await user.alter_topic("__consumer_offsets", internal_segment_bytes="8192")
        for offset in range(60):
            for number, group in enumerate(groups):
                await user.commit(group, "orders", offset + number, partition=offset % 3)
        before = folder_bytes(home, "__consumer_offsets-0")
        committed = {group: await user.committed(group) for group in groups}
        await cleaned(home)
        await cleaned(home)
        assert folder_bytes(home, "__consumer_offsets-0") < before / 3
        assert {group: await user.committed(group) for group in groups} == committed
        after_a_kill = home.killed()
    for again in (home, after_a_kill):
        async with again.running() as user:
            assert {group: await user.committed(group) for group in groups} == committed
            assert folder_bytes(again, "__consumer_offsets-0") < before / 3


async def test_the_transactions_own_topic_shrinks_on_the_disk_and_every_producer_goes_on() -> None:
    home = Home(
        {
            **SETTINGS,
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.segment.bytes": str(1 << 20),
            "log.segment.delete.delay.ms": "1000",
        }
    )
    async with home.running() as user:
        await user.create_topic("orders")
        producers = [await Producer.of(user, f"writer-{number}") for number in range(4)]
        await user.alter_topic("__transaction_state", internal_segment_bytes="8192")
        for _ in range(25):
            for producer in producers:
                await producer.write("orders", b"x")
                await producer.end()
        before = folder_bytes(home, "__transaction_state-0")
        await cleaned(home)
        await cleaned(home)
        assert folder_bytes(home, "__transaction_state-0") < before / 2
        identities = [(producer.id, producer.epoch) for producer in producers]
    async with home.running() as user:
        for producer, (producer_id, epoch) in zip(producers, identities, strict=True):
            again = await Producer.of(user, producer.transactional_id)
            assert (again.id, again.epoch) == (producer_id, epoch + 1)
