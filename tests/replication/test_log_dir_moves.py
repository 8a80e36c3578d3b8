"""Partitions move between log directories of a running broker: clients notice nothing, the controller is
told, and DescribeLogDirs shows how far it is.
"""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import describe_log_dirs
from pykafka_broker.replication.log_dir_moves import LONGEST_PAUSE_MS, CopyThrottle
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import User
from tests.apis.test_alter_replica_log_dirs import alter, moved, place

OTHER = {"/a": "/b", "/b": "/a"}
KIB = 1024


def two_dirs(**overrides: str) -> Home:
    return Home({key.replace("_", "."): value for key, value in overrides.items()}, data_dir="/a,/b")


async def shown(user: User, topic: str) -> dict[str, tuple[int, int, bool]]:
    """(size, lag, whether it is a future replica) of partition 0 in each directory."""
    answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: (partition.partition_size, partition.offset_lag, partition.is_future_key)
        for result in answer.results
        for found in result.topics
        if found.name == topic
        for partition in found.partitions
    }


def directory_in_metadata(home: Home, topic: str) -> str:
    """Where the controller believes partition 0 to be."""
    [directory_id] = home.broker.node.image.topics[topic].partitions[0].directories
    paths = {d.directory_id: d.path for d in home.broker.node.logs.dirs.of_partitions}
    return paths.get(directory_id, directory_id.hex())


async def filled(user: User, topic: str, batches: int = 20) -> list[bytes]:
    await user.create_topic(topic)
    values = [b"%03d" % number + bytes(KIB) for number in range(batches)]
    for value in values:
        await user.produce(topic, value)
    return values


async def test_a_partition_moves_while_it_is_written_and_read() -> None:
    home = two_dirs()
    async with home.running() as user:
        written = await filled(user, "orders")
        source = place(home, "orders")
        async with await User.connect(home.broker.bootstrap_servers) as reader:
            parked = asyncio.ensure_future(
                reader.fetch("orders", len(written), max_wait_ms=60_000, min_bytes=5 * KIB)
            )
            await until(lambda: home.broker.node.broker.purgatory.parked == 1)
            assert await alter(user, (OTHER[source], "orders", [0])) == {("orders", 0): ErrorCode.NONE}
            while home.broker.node.logs.moves.under_way or len(written) < 40:
                written.append(b"%03d" % len(written) + bytes(KIB))
                await user.produce("orders", written[-1])
            await moved(home)
            assert place(home, "orders") == OTHER[source]
            await user.produce("orders", *([b"more" * KIB] * 2))
            written += [b"more" * KIB] * 2
            answer = await asyncio.wait_for(parked, PATIENCE_SECONDS)
            assert (ErrorCode(answer.error_code), bool(answer.records)) == (ErrorCode.NONE, True)
        assert await user.values("orders") == written
    async with home.running() as user:
        assert place(home, "orders") == OTHER[source]
        assert await user.values("orders") == written


async def test_producers_that_wait_for_the_disk_are_answered_through_the_swap() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.create_topic("orders", flush_messages="1")
        source = place(home, "orders")
        await user.produce("orders", b"before")
        await alter(user, (OTHER[source], "orders", [0]))
        users = [await User.connect(home.broker.bootstrap_servers) for _ in range(4)]

        async def produce_ten(each: User) -> list[int]:
            return [await each.produce("orders", b"x") for _ in range(10)]

        answers = [n for some in await asyncio.gather(*map(produce_ten, users)) for n in some]
        await moved(home)
        assert sorted(answers) == list(range(1, 41))
        assert len(await user.values("orders")) == 41
        log = home.broker.node.logs.get("orders", 0)
        assert log is not None
        assert (place(home, "orders"), log.state.recovery_point) == (OTHER[source], 41)
        for each in users:
            await each.close()
    home.files = home.files.power_cut()
    async with home.running() as user:
        assert len(await user.values("orders")) == 41


async def test_a_throttled_move_shows_how_far_it_is_and_obeys_a_new_rate() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1000")
        # One step copies what the throttle lets it, and then what it had too much is waited for.
        await user.create_topic("orders")
        for _ in range(3):
            await user.produce("orders", bytes(700 * KIB))
        source = place(home, "orders")
        size = (await shown(user, "orders"))[source][0]
        await alter(user, (OTHER[source], "orders", [0]))
        future = home.broker.node.logs.moves.under_way["orders", 0].future
        await until(lambda: future.state.log_end_offset == 1)
        await home.pass_time(60_000)
        assert await shown(user, "orders") == {
            source: (size, 0, False),
            OTHER[source]: (size // 3, 2, True),
        }
        assert place(home, "orders") == source

        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1000000000")
        await home.pass_time(5_000)
        await moved(home)
        assert await shown(user, "orders") == {OTHER[source]: (size, 0, False)}


def test_a_throttle_lets_pass_what_its_rate_says() -> None:
    throttle, now_ms, copied = CopyThrottle(0), 0, 0
    while now_ms < 10_000:
        pause_ms = throttle.pause_ms(50_000, now_ms)
        assert pause_ms <= LONGEST_PAUSE_MS
        now_ms += pause_ms
        if not pause_ms:
            throttle.count(7_000)
            copied += 7_000
    assert 490_000 <= copied <= 520_000
    assert CopyThrottle(0).pause_ms(0, 5) == 0
    throttle.count(1)
    assert throttle.pause_ms(0, now_ms) == LONGEST_PAUSE_MS, "rate 0: not at all"


async def test_a_move_goes_on_after_a_stop_and_after_a_kill() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1")
        written = await filled(user, "orders")
        source = place(home, "orders")
        for _ in range(3):
            await user.produce("orders", bytes(700 * KIB))
        await alter(user, (OTHER[source], "orders", [0]))
        future = home.broker.node.logs.moves.under_way["orders", 0].future
        await until(lambda: future.state.log_end_offset > 0)
        after = home.killed()
    for again in (home, after):
        async with again.running() as user:
            move = again.broker.node.logs.moves.under_way["orders", 0]
            assert (place(again, "orders"), move.lag > 0, move.future.state.log_end_offset > 0) == (
                source,
                True,
                True,
            )
            await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1000000000")
            await again.pass_time(3_000)
            await moved(again)
            assert place(again, "orders") == OTHER[source]
            assert (await user.values("orders"))[: len(written)] == written


# --- the controller knows ---------------------------------------------------------------------------------


async def test_the_controller_knows_in_which_directory_each_partition_is() -> None:
    home = two_dirs()
    async with home.running() as user:
        for number in range(4):
            await user.create_topic(f"topic-{number}")
        await until(lambda: all(directory_in_metadata(home, f"topic-{n}") in OTHER for n in range(4)))
        known = {n: directory_in_metadata(home, f"topic-{n}") for n in range(4)}
        assert known == {n: place(home, f"topic-{n}") for n in range(4)}
        await alter(user, (OTHER[known[0]], "topic-0", [0]))
        await moved(home)
        assert directory_in_metadata(home, "topic-0") == OTHER[known[0]] == place(home, "topic-0")
    async with home.running():
        assert directory_in_metadata(home, "topic-0") == OTHER[known[0]]


async def test_a_failed_directory_leaves_its_partitions_and_no_others_without_a_leader() -> None:
    home = two_dirs()
    async with home.running() as user:
        for number in range(4):
            await user.create_topic(f"topic-{number}")
        await until(lambda: all(directory_in_metadata(home, f"topic-{n}") in OTHER for n in range(4)))
        lost = {f"topic-{n}" for n in range(4) if place(home, f"topic-{n}") == "/b"}
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        await user.try_to_produce(next(iter(lost)), b"x")

        def leaderless() -> set[str]:
            topics = home.broker.node.image.topics
            return {name for name, topic in topics.items() if topic.partitions[0].leader < 0}

        await until(lambda: leaderless() == lost)
        [a, b] = home.broker.node.logs.dirs.of_partitions
        registered = home.broker.node.image.brokers[home.broker.node_id].directories
        assert (a.directory_id in registered, b.directory_id in registered) == (True, False)
        answer = await user.metadata("topic-0", "topic-1", "topic-2", "topic-3")
        offline = {t.name for t in answer.topics if t.partitions[0].error_code}
        assert offline == lost
        assert all(t.partitions[0].offline_replicas for t in answer.topics if t.name in lost)
    home.files.heal()
    async with home.running() as user:
        for number in range(4):
            await user.produce(f"topic-{number}", b"back")


async def test_a_target_that_fails_takes_the_copy_along_and_not_the_partition() -> None:
    home = two_dirs()
    async with home.running() as user:
        written = await filled(user, "orders")
        if place(home, "orders") == "/b":
            await alter(user, ("/a", "orders", [0]))
            await moved(home)
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        await alter(user, ("/b", "orders", [0]))
        await moved(home)
        await until(lambda: directory_in_metadata(home, "orders") == "/a")
        written.append(b"goes on")
        await user.produce("orders", b"goes on")
        assert await user.values("orders") == written


async def test_a_target_that_fails_after_the_controller_was_told_is_taken_back() -> None:
    home = two_dirs()
    async with home.running() as user:
        written = await filled(user, "orders")
        if place(home, "orders") == "/b":
            await alter(user, ("/a", "orders", [0]))
            await moved(home)
        home.files.fail("rename", errno.EIO, path="-future")
        await alter(user, ("/b", "orders", [0]))
        await moved(home)
        await until(
            lambda: home.broker.node.image.topics["orders"].partitions[0].leader == home.broker.node_id
        )
        assert directory_in_metadata(home, "orders") == "/a"
        written.append(b"goes on")
        await user.produce("orders", b"goes on")
        assert await user.values("orders") == written


# --- moves that do not come to their end ------------------------------------------------------------------


async def test_a_source_that_fails_leaves_its_copy_to_be_seen() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1")
        for number in range(2):
            await user.create_topic(f"topic-{number}")
        name = next(f"topic-{n}" for n in range(2) if place(home, f"topic-{n}") == "/b")
        for _ in range(3):
            await user.produce(name, bytes(700 * KIB))
        await alter(user, ("/a", name, [0]))
        future = home.broker.node.logs.moves.under_way[name, 0].future
        await until(lambda: future.state.log_end_offset > 0)
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        assert (await user.try_to_produce(name, b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await home.pass_time(3_000)
        await moved(home)
        copied = future.state.size_bytes
        assert await shown(user, name) == {"/a": (copied, -1, True)}
    home.files.heal()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1000000000")
        await home.pass_time(3_000)
        await moved(home)
        assert (place(home, name), len(await user.values(name))) == ("/a", 3)


async def test_a_move_back_ends_a_move() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1")
        await user.create_topic("orders")
        for _ in range(3):
            await user.produce("orders", bytes(700 * KIB))
        source = place(home, "orders")
        await alter(user, (OTHER[source], "orders", [0]))
        assert await alter(user, (OTHER[source], "orders", [0])) == {("orders", 0): ErrorCode.NONE}
        [move] = home.broker.node.logs.moves.under_way.values()  # asked twice, moved once
        assert await alter(user, (source, "orders", [0])) == {("orders", 0): ErrorCode.NONE}
        assert list(await shown(user, "orders")) == [source]
        await until(lambda: not move.is_busy)  # a step that was under way marks the copy for deletion
        await home.pass_time(65_000)
        await moved(home)

        def is_gone() -> bool:
            folders = [entry.name for entry in home.files.entries(OTHER[source]) if entry.is_directory]
            return not any(name.startswith("orders") for name in folders)

        await until(is_gone)  # a thread deletes it
        assert len(await user.values("orders")) == 3


async def test_a_topic_deleted_while_it_moves_is_gone_from_both_directories() -> None:
    home = two_dirs()
    async with home.running() as user:
        await user.alter_broker(replica_alter_log_dirs_io_max_bytes_per_second="1")
        await filled(user, "orders")
        await alter(user, (OTHER[place(home, "orders")], "orders", [0]))
        await user.delete_topic("orders")
        await home.pass_time(65_000)
        await moved(home)
        folders = [e.name for path in OTHER for e in home.files.entries(path) if e.is_directory]
        assert [name for name in folders if name.startswith("orders")] == []
        await user.create_topic("orders")
        await user.produce("orders", b"anew")
        assert await user.values("orders") == [b"anew"]


async def test_a_full_target_holds_the_move_up_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = two_dirs()
    async with home.running() as user:
        written = await filled(user, "orders")
        source = place(home, "orders")
        home.files.fail("pwrite", errno.ENOSPC, path=f"{OTHER[source]}/", times=-1)
        await alter(user, (OTHER[source], "orders", [0]))
        await home.pass_time(10_000)
        assert (place(home, "orders"), home.broker.node.broker.log_dir_moves.under_way) == (source, 1)
        await user.produce("orders", b"goes on")
        home.files.heal()
        await home.pass_time(2_000)
        await moved(home)
        assert place(home, "orders") == OTHER[source]
        assert await user.values("orders") == [*written, b"goes on"]
    assert len([r for r in caplog.records if "The move of orders-0 waits" in r.message]) == 1


async def test_the_coordinators_topics_can_be_moved_too() -> None:
    home = two_dirs(offsets_topic_num_partitions="1")
    async with home.running() as user:
        await user.create_topic("orders")
        await user.commit("readers", "orders", 1)
        source = place(home, "__consumer_offsets")
        await alter(user, (OTHER[source], "__consumer_offsets", [0]))
        await user.commit("readers", "orders", 2)
        await moved(home)
        await user.commit("readers", "orders", 3)
        assert place(home, "__consumer_offsets") == OTHER[source]
        assert await user.committed("readers") == {("orders", 0): 3}
    async with home.running() as user:
        await user.find_coordinator("readers")
        assert await user.committed("readers") == {("orders", 0): 3}


# --- directories that are to be emptied -------------------------------------------------------------------


async def test_a_cordoned_directory_keeps_its_partitions_and_gets_no_new_ones() -> None:
    home = Home({"cordoned.log.dirs": "/b"}, data_dir="/a,/b")
    async with home.running() as user:
        for number in range(3):
            await user.create_topic(f"topic-{number}")
            assert place(home, f"topic-{number}") == "/a"
        assert await alter(user, ("/b", "topic-0", [0])) == {
            ("topic-0", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT
        }
        answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=None), 5)
        assert {result.log_dir: result.is_cordoned for result in answer.results} == {"/a": False, "/b": True}
        node_id, [a, b] = home.broker.node_id, home.broker.node.logs.dirs.of_partitions
        assert home.broker.node.image.brokers[node_id].cordoned_directories == (b.directory_id,)

        await user.alter_broker(node_id, cordoned_log_dirs="/a")
        await until(lambda: home.broker.node.image.brokers[node_id].cordoned_directories == (a.directory_id,))
        await user.create_topic("new")
        assert place(home, "new") == "/b"
        await alter(user, ("/b", "topic-0", [0]))
        await moved(home)
        assert place(home, "topic-0") == "/b"


async def test_nothing_new_comes_to_a_broker_whose_directories_are_all_cordoned() -> None:
    home = Home({"cordoned.log.dirs": "*"}, data_dir="/a,/b")
    async with home.running() as user:
        assert await user.try_to_create_topic("orders") == ErrorCode.INVALID_REPLICATION_FACTOR
        await user.alter_broker(home.broker.node_id, cordoned_log_dirs="")
        await until(lambda: not home.broker.node.image.brokers[home.broker.node_id].cordoned_directories)
        await user.create_topic("orders")
