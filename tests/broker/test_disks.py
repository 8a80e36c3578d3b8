"""Disks that are full or broken under a running broker: who is told, who goes on, what must never be lost."""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import describe_log_dirs
from pykafka_broker.testing.home import DATA, PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import User

KIB = 1024
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


async def produced(user: User, topic: str, value: bytes, **details: int) -> ErrorCode:
    return ErrorCode((await user.try_to_produce(topic, value, **details)).error_code)


async def test_a_full_disk_refuses_producers_serves_consumers_and_heals_by_itself() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.commit("readers", "orders", 0)
        identity = {"producer_id": await user.new_producer_id(), "producer_epoch": 0}
        acknowledged: list[bytes] = []
        home.files.free_bytes = 20 * KIB
        for number in range(30):
            value = b"%03d" % number + bytes(KIB)
            code = await produced(user, "orders", value, base_sequence=len(acknowledged), **identity)
            if code == ErrorCode.NONE:
                acknowledged.append(value)
            else:
                assert code == STORAGE_ERROR
        assert 10 < len(acknowledged) < 30
        assert await user.values("orders") == acknowledged
        assert await user.committed("readers") == {("orders", 0): 0}
        assert await user.try_to_commit("readers", "orders", 1) != ErrorCode.NONE

        home.files.free_bytes = None

        assert await user.produce("orders", b"again", base_sequence=len(acknowledged), **identity)
        await user.commit("readers", "orders", 2)
        acknowledged.append(b"again")
        assert await user.values("orders") == acknowledged
        after = home.killed()
    for again in (home, after):
        async with again.running() as user:
            assert await user.values("orders") == acknowledged
            assert await user.committed("readers") == {("orders", 0): 2}


async def usable_bytes(user: User) -> list[int]:
    answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=[]), 4)
    return [result.usable_bytes for result in answer.results]


def lines_about_room(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.module == "full_disks"]


@pytest.mark.parametrize("metadata_dir", [DATA, "/meta"])
async def test_a_full_disk_leaves_one_line_and_one_when_there_is_room_again(
    metadata_dir: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    home = Home({"metadata.log.dir": metadata_dir})
    async with home.running() as user:
        await user.create_topic("orders")
        home.files.free_bytes = 100
        for _ in range(20):
            assert await produced(user, "orders", bytes(KIB)) == STORAGE_ERROR
            await home.pass_time(1_000)
        full = (
            "WARNING",
            f"{DATA} takes no more records (No space left on device); 0 of {1 << 40} bytes are free. "
            "Producers are refused until there is room",
        )
        assert lines_about_room(caplog) == [full]
        assert (await usable_bytes(user)) == [0]

        home.files.free_bytes = 5 << 20
        assert await produced(user, "orders", b"small") == ErrorCode.NONE
        await home.pass_time(8_000)
        assert lines_about_room(caplog) == [full], "nothing is said before it is sure"
        assert (await usable_bytes(user)) == [0]
        await home.pass_time(3_000)
        await until(lambda: len(lines_about_room(caplog)) == 2)
        [usable] = await usable_bytes(user)
        assert 3 << 20 < usable < 5 << 20
        told, room = lines_about_room(caplog)
        assert told == full
        assert (room[0], room[1].partition("; ")[0]) == ("INFO", f"{DATA} takes records again")
        assert not home.files.exists(f"{DATA}/.trial")

        home.files.free_bytes = 0
        assert await produced(user, "orders", bytes(KIB)) == STORAGE_ERROR
        await until(lambda: len(lines_about_room(caplog)) == 3)
        assert lines_about_room(caplog) == [full, room, full]
        home.files.free_bytes = None


async def test_a_disk_that_has_room_for_small_batches_only_does_not_fill_the_log_with_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        home.files.free_bytes = 100 * KIB
        for _ in range(60):
            assert await produced(user, "orders", bytes(200 * KIB)) == STORAGE_ERROR
            home.files.free_bytes = 100 * KIB  # memory files give nothing back
            await home.pass_time(1_000)
        await home.pass_time(30_000)
        assert [level for level, _ in lines_about_room(caplog)] == ["WARNING"]
        home.files.free_bytes = None


async def test_a_disk_mounted_read_only_is_told_like_a_full_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    home = Home({"metadata.log.dir": "/meta"})
    async with home.running() as user:
        await user.create_topic("orders")
        for operation in CHANGES:
            home.files.fail(operation, errno.EROFS, path=DATA, times=-1)
        assert await produced(user, "orders", b"x") == STORAGE_ERROR
        await home.pass_time(30_000)
        assert [line.partition(";")[0] for _, line in lines_about_room(caplog)] == [
            f"{DATA} takes no more records (Read-only file system)"
        ]
        assert await usable_bytes(user) == [0]
        home.files.heal()
        await home.pass_time(11_000)
        await until(lambda: len(lines_about_room(caplog)) == 2)
        assert await usable_bytes(user) == [1 << 39]


async def test_a_full_disk_of_the_metadata_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    home = Home({"metadata.log.dir": "/meta"})
    async with home.running() as user:
        home.files.free_bytes = 0
        assert await user.try_to_create_topic("orders") == STORAGE_ERROR
        await until(lambda: lines_about_room(caplog))
        assert [line.partition(" (")[0] for _, line in lines_about_room(caplog)] == [
            "/meta takes no more records"
        ]
        home.files.free_bytes = None


async def test_a_broker_may_be_stopped_and_started_on_a_full_disk() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        home.files.free_bytes = 0
    async with home.running() as user:
        assert await user.values("orders") == [b"one"]
        assert await produced(user, "orders", b"refused") == STORAGE_ERROR
        home.files.free_bytes = None
        await user.produce("orders", b"two")
        assert await user.values("orders") == [b"one", b"two"]


async def test_no_topic_is_created_on_a_full_disk_and_then_it_is() -> None:
    home = Home()
    async with home.running() as user:
        home.files.free_bytes = 0
        for _ in range(3):
            assert await user.try_to_create_topic("orders") == STORAGE_ERROR
        assert await user.topics() == {}
        home.files.free_bytes = None
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        assert await user.values("orders") == [b"one"]


async def test_a_partition_whose_folder_found_no_room_is_made_when_there_is_room() -> None:
    """The metadata log took the topic, the disk refused its folder: it was offline until the next start."""
    home = Home()
    async with home.running() as user:
        home.files.fail("make_directory", errno.ENOSPC, path="orders-1")
        home.files.fail("write_file", errno.ENOSPC, path="orders-2/leader-epoch-checkpoint")
        await user.create_topic("orders", partitions=3)
        assert await produced(user, "orders", b"zero") == ErrorCode.NONE
        for partition in (1, 2):
            assert await produced(user, "orders", b"x", partition=partition) == STORAGE_ERROR

        home.files.heal()
        await home.pass_time(2_000)

        for partition in (1, 2):
            assert await produced(user, "orders", b"x", partition=partition) == ErrorCode.NONE
            assert await user.values("orders", partition=partition) == [b"x"]


async def test_a_topic_deleted_before_its_folder_could_be_made_is_forgotten() -> None:
    home = Home()
    async with home.running() as user:
        home.files.fail("make_directory", errno.ENOSPC, path="orders-0")
        await user.create_topic("orders")
        await user.delete_topic("orders")
        home.files.heal()
        await home.pass_time(2_000)
        assert not home.files.exists(f"{DATA}/orders-0")
        assert await user.topics() == {}


#: What a file system that is mounted read-only refuses.
CHANGES = ("pwrite", "create", "write_file", "rename", "make_directory", "truncate", "remove", "remove_tree")


async def test_a_disk_mounted_read_only_refuses_producers_serves_consumers_and_heals_by_itself() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.commit("readers", "orders", 0)
        identity = {"producer_id": await user.new_producer_id(), "producer_epoch": 0}
        await user.produce("orders", b"one", base_sequence=0, **identity)
        for operation in CHANGES:
            home.files.fail(operation, errno.EROFS, times=-1)

        for _ in range(3):
            assert await produced(user, "orders", b"two", base_sequence=1, **identity) == STORAGE_ERROR
        assert await user.try_to_commit("readers", "orders", 1) != ErrorCode.NONE
        assert await user.try_to_create_topic("more") == STORAGE_ERROR
        await home.pass_time(70_000)
        assert await user.values("orders") == [b"one"]
        assert await user.committed("readers") == {("orders", 0): 0}

        home.files.heal()

        await user.produce("orders", b"two", base_sequence=1, **identity)
        await user.commit("readers", "orders", 2)
        await user.create_topic("more")
        after = home.killed()
    for again in (home, after):
        async with again.running() as user:
            assert await user.values("orders") == [b"one", b"two"]
            assert await user.committed("readers") == {("orders", 0): 2}


async def test_a_broker_whose_last_directory_failed_cannot_go_on() -> None:
    home = Home({"metadata.log.dir": "/meta"}, data_dir="/a,/b")
    broker = home.new_broker()
    await broker.start()
    async with await User.connect(broker.bootstrap_servers) as user:
        topics = await spread(user)
        home.files.fail("pwrite", errno.EIO, path="/a/", times=-1)
        assert await produced(user, topics["/a"][0], b"x") == STORAGE_ERROR
        assert await produced(user, topics["/b"][0], b"x") == ErrorCode.NONE
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        assert await produced(user, topics["/b"][0], b"x") == STORAGE_ERROR
        with pytest.raises(OSError, match="Input/output error"):
            await asyncio.wait_for(broker.failed(), PATIENCE_SECONDS)
    await broker.stop()


async def test_a_full_disk_that_fails_goes_out_of_service(caplog: pytest.LogCaptureFixture) -> None:
    home = Home({"metadata.log.dir": "/meta"}, data_dir="/a,/b")
    async with home.running() as user:
        topics = await spread(user)
        home.files.fail("pwrite", errno.ENOSPC, path="/b/", times=-1)
        assert await produced(user, topics["/b"][0], b"x") == STORAGE_ERROR
        home.files.heal()
        home.files.fail("create", errno.EIO, path="/b/.trial", times=-1)
        await home.pass_time(11_000)
        await until(lambda: "Stopping serving logs in dir /b: [Errno 5]" in caplog.text)
        assert await produced(user, topics["/b"][0], b"x") == STORAGE_ERROR
        assert await produced(user, topics["/a"][0], b"x") == ErrorCode.NONE


async def test_a_directory_that_cannot_be_read_at_the_start_is_left_out() -> None:
    """Made anew elsewhere, a partition would begin empty beside its records."""
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        topics = await spread(user)
    home.files.fail("read_file", errno.EIO, path="/b/", times=-1)
    async with home.running() as user:
        assert await user.values(topics["/a"][0]) != []
        assert await produced(user, topics["/b"][0], b"x") == STORAGE_ERROR
        assert not home.files.exists(f"/a/{topics['/b'][0]}-0")
        await user.create_topic("new")
        assert await produced(user, "new", b"x") == ErrorCode.NONE, "what is new can be nowhere else"
    home.files.heal()
    async with home.running() as user:
        for number in range(4):
            assert await user.values(f"topic-{number}") == [b"%d" % number]


async def spread(user: User) -> dict[str, list[str]]:
    """Four topics over two directories, a record each; the topics of each directory."""
    for number in range(4):
        await user.create_topic(f"topic-{number}")
        await user.produce(f"topic-{number}", b"%d" % number)
    answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)
    return {result.log_dir: sorted(topic.name for topic in result.topics) for result in answer.results}


async def test_a_failing_disk_takes_only_its_own_partitions_along(caplog: pytest.LogCaptureFixture) -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        topics = await spread(user)
        assert [len(topics[path]) for path in ("/a", "/b")] == [2, 2]
        broken, other = topics["/b"]
        healthy = topics["/a"][0]
        reader = await User.connect(home.broker.bootstrap_servers)
        parked = asyncio.ensure_future(reader.fetch(other, 1, max_wait_ms=60_000))
        await until(lambda: home.broker.node.broker.purgatory.parked == 1)

        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        assert await produced(user, broken, b"lost") == STORAGE_ERROR

        assert await produced(user, other, b"lost") == STORAGE_ERROR
        assert ErrorCode((await asyncio.wait_for(parked, PATIENCE_SECONDS)).error_code) in (
            STORAGE_ERROR,
            ErrorCode.NONE,
        )
        assert ErrorCode((await user.fetch(broken)).error_code) == STORAGE_ERROR
        assert await produced(user, healthy, b"x") == ErrorCode.NONE
        assert len(await user.values(healthy)) == 2
        await user.commit("readers", healthy, 1)
        await user.create_topic("new")
        await user.produce("new", b"x")
        assert home.files.exists("/a/new-0"), "nothing new goes to a broken disk"
        answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)
        assert {result.log_dir: ErrorCode(result.error_code) for result in answer.results} == {
            "/a": ErrorCode.NONE,
            "/b": STORAGE_ERROR,
        }
        await reader.close()
    lines = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert lines == [
        "Stopping serving logs in dir /b: [Errno 5] Input/output error: '/b/" + broken + "-0/"
        "00000000000000000000.log'"
    ]
    assert home.files.exists("/a/.kafka_cleanshutdown")
    assert not home.files.exists("/b/.kafka_cleanshutdown")

    home.files.heal()
    async with home.running() as user:
        for number in range(4):
            assert (await user.values(f"topic-{number}"))[0] == b"%d" % number
        assert await produced(user, broken, b"back") == ErrorCode.NONE


async def test_a_broker_that_lost_its_metadata_disk_cannot_go_on() -> None:
    home = Home(data_dir="/a,/b")
    broker = home.new_broker()
    await broker.start()
    async with await User.connect(broker.bootstrap_servers) as user:
        topics = await spread(user)
        home.files.fail("pwrite", errno.EIO, path=f"/a/{topics['/a'][0]}-0")
        assert await produced(user, topics["/a"][0], b"x") == STORAGE_ERROR
        with pytest.raises(OSError, match="Input/output error"):
            await asyncio.wait_for(broker.failed(), PATIENCE_SECONDS)
    await broker.stop()


async def test_checkpoints_that_find_no_room_are_written_later(caplog: pytest.LogCaptureFixture) -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        home.files.free_bytes = 0
        await home.pass_time(20_000)
        assert "replication-offset-checkpoint" in caplog.text
        assert await user.values("orders") == [b"one"]
        home.files.free_bytes = None
        await home.pass_time(20_000)
        assert b"orders 0 1" in home.files.read_file(f"{DATA}/replication-offset-checkpoint")
