"""A disk that hangs delays the requests that need it, and no others."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest

from pykafka_broker.log.manager.disk_threads import THREADS_PER_DIRECTORY
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, read_records
from pykafka_broker.testing.clock import NOW
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import EARLIEST, User, fetch_request

#: Twice as many as there are threads for anything.
CROWD = 2 * THREADS_PER_DIRECTORY
BOTH_DISKS = "/fast,/slow"


@contextmanager
def standing_still(home: Home, operation: str, suffix: str = "") -> Iterator[set[str]]:
    """Such operations of the slow disk do not return; the set says whether one waits."""
    gate = threading.Event()
    waiting: set[str] = set()

    def meanwhile(done: str, path: str) -> None:
        if done == operation and path.startswith("/slow/") and path.endswith(suffix):
            waiting.add(operation)
            gate.wait()

    home.files.is_cached = False
    home.files.meanwhile = meanwhile
    try:
        yield waiting
    finally:
        home.files.meanwhile = None
        gate.set()


async def one_on_each_disk(home: Home, user: User, **configs: Any) -> tuple[str, str]:
    """A topic on the fast disk and one on the slow one, each with a record."""
    for name in ("one", "other"):
        await user.create_topic(name, **configs)
        await user.produce(name, b"x")
    on_fast = [name for name in ("one", "other") if home.files.exists(f"/fast/{name}-0")]
    on_slow = [name for name in ("one", "other") if home.files.exists(f"/slow/{name}-0")]
    [[fast], [slow]] = on_fast, on_slow
    return fast, slow


@asynccontextmanager
async def crowd(home: Home) -> AsyncIterator[list[User]]:
    async with AsyncExitStack() as stack:
        address = home.broker.bootstrap_servers
        yield [await stack.enter_async_context(await User.connect(address)) for _ in range(CROWD)]


async def test_readers_of_a_disk_that_stands_still_hold_up_no_reader_of_another() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user)
        async with crowd(home) as users:
            with standing_still(home, "pread") as waiting:
                asked: list[asyncio.Future[Any]] = [
                    asyncio.ensure_future(each.fetch(slow)) for each in users[::2]
                ]
                asked += [asyncio.ensure_future(each.offset_for(slow, NOW)) for each in users[1::2]]
                await until(lambda: waiting == {"pread"})

                assert await user.values(fast) == [b"x"]
                assert await user.offset_for(fast, NOW) == 0
                assert await user.produce(fast, b"y") == 1
                assert not any(future.done() for future in asked)

            answers = await asyncio.gather(*asked)
            assert [answer.error_code for answer in answers[: CROWD // 2]] == [ErrorCode.NONE] * (CROWD // 2)
            assert answers[CROWD // 2 :] == [0] * (CROWD // 2)


def both(fast: str, slow: str, *, fast_offset: int = 0, **limits: Any) -> FetchRequest:
    """A fetch of both topics at once, as a consumer of both sends it."""
    request = fetch_request(slow, **limits)
    request.topics += fetch_request(fast, fast_offset).topics
    return request


async def answered(fetching: Awaitable[Any]) -> dict[str, bytes]:
    """What is in the answer, by topic; no partition has an error."""
    answer = await asyncio.wait_for(fetching, PATIENCE_SECONDS)
    partitions = {topic.topic: topic.partitions[0] for topic in answer.responses}
    assert {name: part.error_code for name, part in partitions.items()} == dict.fromkeys(partitions, 0)
    return {name: bytes(part.records) for name, part in partitions.items()}


async def hears_of_a_new_record(
    fetching: Awaitable[Any], home: Home, writer: User, fast: str, slow: str
) -> None:
    """A fetch of both topics that is parked is answered with what `writer` produces to the fast disk."""
    await until(lambda: home.broker.node.broker.purgatory.parked == 1)
    await writer.produce(fast, b"new")
    found = await answered(fetching)
    assert found[slow] == b""
    assert [record.value for record in read_records(found[fast])] == [b"new"]


async def test_a_fetch_answers_what_the_fast_disk_has_and_asks_the_slow_one_when_it_has_answered() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user)
        whole = await answered(user.send(both(fast, slow), 12))
        with standing_still(home, "pread") as waiting:
            home.files.is_cached_of = lambda path: path.startswith("/fast/")
            first = asyncio.ensure_future(user.send(both(fast, slow), 12))
            await until(lambda: waiting == {"pread"})
            await home.pass_time(99)
            assert not first.done(), "most disks answer within so much time"
            await home.pass_time(1)
            assert await answered(first) == {slow: b"", fast: whole[fast]}

            # It is not waited for again, nor read again, and is no reason to answer at once without records.
            reads = len(home.files.calls)
            assert await answered(user.send(both(fast, slow), 12)) == {slow: b"", fast: whole[fast]}
            parked = asyncio.ensure_future(
                user.send(both(fast, slow, fast_offset=1, max_wait_ms=60_000, min_bytes=2), 12)
            )
            await until(lambda: home.broker.node.broker.purgatory.parked == 1)
            await home.pass_time(1_000)
            assert not parked.done()
            assert "pread" not in [operation for operation, _ in home.files.calls[reads:]]

        home.files.is_cached = True
        assert await answered(parked) == {slow: whole[slow], fast: b""}
        assert await answered(user.send(both(fast, slow), 12)) == whole


async def test_a_new_record_on_the_fast_disk_is_answered_while_the_slow_one_stands_still() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as writer:
        fast, slow = await one_on_each_disk(home, user)
        with standing_still(home, "pread") as waiting:
            home.files.is_cached_of = lambda path: path.startswith("/fast/")
            waits = both(fast, slow, fast_offset=1, max_wait_ms=5_000, min_bytes=1)
            first = asyncio.ensure_future(user.send(waits, 12))
            await until(lambda: waiting == {"pread"})
            await home.pass_time(4_999)
            assert not first.done(), "there is nothing else to answer, and the client waits"
            await home.pass_time(1)
            assert await answered(first) == {slow: b"", fast: b""}

            second = asyncio.ensure_future(user.send(waits, 12))
            await hears_of_a_new_record(second, home, writer, fast, slow)


async def test_a_fetch_that_has_waited_for_a_disk_hears_of_new_records_on_another() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as writer:
        fast, slow = await one_on_each_disk(home, user)
        with standing_still(home, "pread") as waiting:
            home.files.is_cached_of = lambda path: path.startswith("/fast/")
            fetching = asyncio.ensure_future(
                user.send(both(fast, slow, fast_offset=1, max_wait_ms=60_000), 12)
            )
            await until(lambda: waiting == {"pread"})
            await home.pass_time(1_000)
            await hears_of_a_new_record(fetching, home, writer, fast, slow)


@pytest.mark.parametrize("clock_set_by_ms", [0, -3_600_000, 3_600_000])
async def test_who_waits_for_nothing_gives_a_disk_a_second(clock_set_by_ms: int) -> None:
    """A disk that has to spin up would else look like a partition without records."""
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        _, slow = await one_on_each_disk(home, user)
        with standing_still(home, "pread") as waiting:
            fetching = asyncio.ensure_future(user.fetch(slow))
            await until(lambda: waiting == {"pread"})
            home.clock.set_wall_clock(clock_set_by_ms)
            await home.pass_time(999)
            assert not fetching.done()
            await home.pass_time(1)
            answer = await asyncio.wait_for(fetching, PATIENCE_SECONDS)
            assert (answer.error_code, bytes(answer.records), answer.high_watermark) == (0, b"", 1)


async def test_a_disk_that_fails_at_last_tells_the_next_reader() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user)
        home.files.fail("pread", errno.EIO, path="/slow/", times=2)
        with standing_still(home, "pread") as waiting:
            fetching = asyncio.ensure_future(user.send(both(fast, slow), 12))
            await until(lambda: waiting == {"pread"})
            await home.pass_time(1_000)
            assert (await answered(fetching))[slow] == b""
        log = home.broker.node.logs.get(slow, 0)
        await until(lambda: log is not None and not home.broker.node.broker.ports.cold_reads.is_late(log))
        home.files.is_cached = False
        assert ErrorCode((await user.fetch(slow)).error_code) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await user.values(slow) == [b"x"]


async def test_readers_of_a_disk_hold_up_no_acknowledgement_that_waits_for_its_sync() -> None:
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        _, slow = await one_on_each_disk(home, user, flush_messages="1")
        async with crowd(home) as users:
            with standing_still(home, "pread") as waiting:
                asked = [asyncio.ensure_future(each.fetch(slow)) for each in users]
                await until(lambda: waiting == {"pread"})
                assert await user.produce(slow, b"y") == 1
                assert not any(future.done() for future in asked)
            await asyncio.gather(*asked)


async def test_the_log_names_the_topic_that_a_producer_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    """Current clients name topics by their ids only, which say nothing to who reads the log."""
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        _, slow = await one_on_each_disk(home, user, flush_messages="1")
        topic_id = home.broker.node.image.topics[slow].topic_id
        data = PartitionProduceData(index=0, records=build_batch([(NOW, None, b"y", ())], BatchFields()))
        topic = TopicProduceData(topic_id=topic_id, partition_data=[data])
        with standing_still(home, "sync") as waiting:
            user.write(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 13)
            await until(lambda: waiting == {"sync"})
            await home.clock.pass_time(30_000)
        answer = await user.read(api_key_of(ProduceRequest), 13)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    [line] = [message for message in caplog.messages if "is unanswered after" in message]
    assert line.startswith("Produce v13 with correlation id ")
    assert line.endswith(f"may take 10000 ms by itself: it waits for partition '{slow}-0'")


@pytest.mark.parametrize("operation", ["sync", "rename"])
async def test_what_a_slow_disk_does_behind_its_clients_backs_holds_up_no_topic_of_another(
    operation: str,
) -> None:
    """No request waits while closed segments are synced and those that retention deletes are renamed."""
    home = Home(data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user, internal_segment_bytes="200", retention_bytes="200")
        with standing_still(home, operation, ".log") as waiting:
            for _ in range(CROWD):
                await user.produce(slow, bytes(60))
                for log in home.broker.node.logs:
                    log.trimmer.apply_retention(NOW)
            await until(lambda: waiting == {operation})

            await user.create_topic("new")
            assert await user.offset_for(fast, NOW) == 0
            assert await user.values(fast) == [b"x"]


async def test_the_age_of_segments_is_not_read_where_others_have_to_wait() -> None:
    """After a start no segment's newest timestamp is known: it stands in the time index."""
    home = Home({"log.retention.check.interval.ms": "1000"}, data_dir=BOTH_DISKS)
    async with home.running() as user:
        fast, slow = await one_on_each_disk(home, user, internal_segment_bytes="200", retention_ms="1000")
        for _ in range(CROWD):
            await user.produce(slow, bytes(60))
    async with home.running() as user:
        with standing_still(home, "pread", ".timeindex") as waiting:
            await home.pass_time(60_000)
            await until(lambda: waiting == {"pread"})
            assert await user.values(fast) == []
            assert await user.offset_for(slow, EARLIEST) == 0
        log = home.broker.node.logs.get(slow, 0)
        assert log is not None
        await until(lambda: log.state.log_start_offset == CROWD + 1)


@asynccontextmanager
async def a_group_and_both_disks(**configs: Any) -> AsyncIterator[tuple[Home, User, User]]:
    """A topic on each disk, named like it, and the groups on the fast one; two users."""
    home = Home({"offsets.topic.num.partitions": "1"}, data_dir=BOTH_DISKS)
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as other:
        await user.find_coordinator("readers")
        for topic in ("slow", "fast"):
            await user.create_topic(topic, **configs)
            await user.produce(topic, bytes(60))
        for folder in ("/fast/__consumer_offsets-0", "/slow/slow-0", "/fast/fast-0"):
            assert home.files.exists(folder)
        yield home, user, other


async def goes_on(home: Home, user: User) -> None:
    """All that needs no slow disk is answered: records, metadata, groups, periodic work."""
    offset = await user.produce("fast", b"y")
    assert (await user.fetch("fast", offset)).high_watermark == offset + 1
    assert "fast" in await user.topics()
    await user.commit("readers", "fast", offset)
    assert await user.committed("readers") == {("fast", 0): offset}
    await home.pass_time(7_000)
    assert f"fast 0 {offset + 1}".encode() in home.files.read_file("/fast/replication-offset-checkpoint")


async def test_a_segment_that_cannot_be_made_holds_up_its_own_producers_alone() -> None:
    async with a_group_and_both_disks(internal_segment_bytes="200") as (home, user, other):
        third = await User.connect(home.broker.bootstrap_servers)
        with standing_still(home, "create", ".log") as waiting:
            first = asyncio.ensure_future(user.produce("slow", b"1" + bytes(90)))
            await until(lambda: waiting == {"create"})
            second = asyncio.ensure_future(third.produce("slow", b"2"))
            await goes_on(home, other)
            assert not first.done()
            assert not second.done()
        assert {await first, await second} == {1, 2}
        assert len(await user.values("slow")) == 3
        log = home.broker.node.logs.get("slow", 0)
        assert log is not None
        assert [segment.base_offset for segment in log.state.segments] == [0, 1, 2]
        await third.close()


async def test_a_leader_epoch_that_cannot_be_written_holds_up_its_own_producers_alone() -> None:
    async with a_group_and_both_disks() as (home, _, _):
        pass
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as other:
        with standing_still(home, "rename", "leader-epoch-checkpoint.tmp") as waiting:
            first = asyncio.ensure_future(user.produce("slow", b"x"))
            await until(lambda: waiting == {"rename"})
            await goes_on(home, other)
            assert not first.done()
        assert await first == 1


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("compression", ["producer", "zstd"])
async def test_what_had_to_wait_for_a_segment_is_stored_as_it_was_sent(
    timestamps: str, compression: str
) -> None:
    configs = {"message_timestamp_type": timestamps, "compression_type": compression}
    async with a_group_and_both_disks(internal_segment_bytes="200", **configs) as (_, user, _):
        values = [b"%d" % number + bytes(90) for number in range(5)]
        for value in values:
            await user.produce("slow", value)
        records = await user.records("slow")
        assert [record.value for record in records] == [bytes(60), *values]
        assert {record.timestamp for record in records} == {NOW}


async def test_a_topic_that_cannot_be_made_on_one_disk_is_made_on_the_other_and_holds_up_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_group_and_both_disks() as (home, user, other):
        with standing_still(home, "make_directory") as waiting:
            await user.create_topic("new", partitions=2)
            assert waiting == {"make_directory"}
            [on_fast] = [number for number in (0, 1) if home.files.exists(f"/fast/new-{number}")]
            assert await user.produce("new", b"x", partition=on_fast) == 0
            answer = await user.try_to_produce("new", b"x", partition=1 - on_fast)
            assert ErrorCode(answer.error_code) == ErrorCode.KAFKA_STORAGE_ERROR
            [line] = [record for record in caplog.records if "has not made the log" in record.getMessage()]
            assert line.levelno == logging.WARNING, "it is made in the end"
            await goes_on(home, other)
            await other.delete_topic("fast")
        await until(lambda: not home.broker.node.logs._creation.makers)
        await home.pass_time(2_000)
        assert await user.produce("new", b"x", partition=1 - on_fast) == 0
        assert home.files.exists(f"/slow/new-{1 - on_fast}")


async def test_a_topic_deleted_while_it_is_made_leaves_nothing() -> None:
    async with a_group_and_both_disks() as (home, user, _):
        with standing_still(home, "make_directory"):
            await user.create_topic("new", partitions=2)
            await user.delete_topic("new")
        await until(lambda: not home.broker.node.logs._creation.makers)
        await home.pass_time(62_000)
        left = [path for path in home.files.directories if "new" in path]
        assert left == []
        await user.create_topic("new", partitions=2)
        for partition in (0, 1):
            assert await user.produce("new", b"x", partition=partition) == 0


async def test_a_folder_that_cannot_be_renamed_when_its_topic_is_deleted_holds_up_none() -> None:
    async with a_group_and_both_disks() as (home, user, other):
        with standing_still(home, "rename", "/slow-0") as waiting:
            await user.delete_topic("slow")
            await until(lambda: waiting == {"rename"})
            await goes_on(home, other)
            await other.delete_topic("fast")
            await until(lambda: not home.files.exists("/fast/fast-0"))
            assert home.files.exists("/slow/slow-0")
        await until(lambda: not home.files.exists("/slow/slow-0"))


async def test_files_that_cannot_be_removed_hold_up_no_other_removal() -> None:
    async with a_group_and_both_disks() as (home, user, other):
        with standing_still(home, "remove_tree") as waiting:
            await user.delete_topic("slow")
            await home.pass_time(62_000)
            assert waiting == {"remove_tree"}
            await goes_on(home, other)
            await other.delete_topic("fast")
            await home.pass_time(62_000)
            assert [path for path in home.files.directories if path.startswith("/fast/fast-0")] == []
