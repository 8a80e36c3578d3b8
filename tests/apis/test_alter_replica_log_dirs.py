"""AlterReplicaLogDirs (34): what moves, and what is refused, in which order."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from pykafka_broker.apis.alter_replica_log_dirs import alter_replica_log_dirs
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import every

LATEST = 2
Errors = dict[tuple[str, int], ErrorCode]


async def alter(user: User, *moves: tuple[str, str, list[int]], version: int = LATEST) -> Errors:
    """Move (directory, topic, partitions); the outcomes."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=partitions)])
        for path, topic, partitions in moves
    ]
    answer: Any = await user.send(AlterReplicaLogDirsRequest(dirs=dirs), version)
    return {
        (topic.topic_name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.results
        for partition in topic.partitions
    }


def place(home: Home, topic: str, partition: int = 0) -> str:
    """The log directory a partition is in."""
    log = home.broker.node.logs.get(topic, partition)
    assert log is not None
    return home.broker.node.logs.dir_of(log).path


async def moved(home: Home) -> None:
    """Return when nothing is under way any more."""
    await until(lambda: not home.broker.node.broker.log_dir_moves.under_way)


@pytest.mark.parametrize("version", every(alter_replica_log_dirs))
async def test_partitions_move_to_the_directory_that_is_named(version: int) -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        await user.create_topic("t", 2)
        for partition in (0, 1):
            await user.produce("t", b"one", b"two", partition=partition)
        target = {"/a": "/b", "/b": "/a"}
        first, second = target[place(home, "t", 0)], target[place(home, "t", 1)]

        outcomes = await alter(user, (first, "t", [0]), (second, "t", [1]), version=version)
        await moved(home)

        assert outcomes == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NONE}
        assert (place(home, "t", 0), place(home, "t", 1)) == (first, second)
        for partition in (0, 1):
            assert await user.values("t", partition=partition) == [b"one", b"two"]


async def test_what_is_refused_and_in_which_order() -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        await user.create_topic("t")
        here = place(home, "t")
        outcomes = await alter(
            user,
            ("/c", "t" * 214, [0]),
            ("/c", "missing", [0]),
            ("/c", "t", [0]),
            ("/a/", "t", [1]),
            ("/a", "missing", [1]),
            (here, "t", [0]),
        )
        assert outcomes == {
            ("t" * 214, 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
            ("missing", 0): ErrorCode.LOG_DIR_NOT_FOUND,
            ("t", 0): ErrorCode.NONE,  # the last directory counts, and there it is
            ("t", 1): ErrorCode.LOG_DIR_NOT_FOUND,
            ("missing", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert home.broker.node.logs.moves.under_way == {}


async def test_a_partition_that_is_not_there_yet_is_made_where_it_was_wanted() -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        for number, path in enumerate(("/a", "/b", "/b", "/b")):
            name = f"wanted-{number}"
            assert await alter(user, (path, name, [0])) == {(name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            await user.create_topic(name)
            assert place(home, name) == path, "not in the emptiest, which it would be in else"


async def test_nothing_moves_to_or_from_a_disk_that_has_failed() -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        await user.create_topic("t", 4)
        healthy = next(n for n in range(4) if place(home, "t", n) == "/a")
        broken = next(n for n in range(4) if place(home, "t", n) == "/b")
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        await user.try_to_produce("t", b"x", partition=broken)

        assert await alter(user, ("/b", "t", [healthy]), ("/a", "t", [broken]), ("/b", "x", [0])) == {
            ("t", healthy): ErrorCode.KAFKA_STORAGE_ERROR,
            ("t", broken): ErrorCode.KAFKA_STORAGE_ERROR,
            ("x", 0): ErrorCode.KAFKA_STORAGE_ERROR,
        }


async def test_a_move_is_not_begun_while_a_third_disk_may_hold_a_copy_already() -> None:
    home = Home(data_dir="/a,/b,/c")
    async with home.running() as user:
        await user.create_topic("t", 3)
        healthy = next(n for n in range(3) if place(home, "t", n) == "/a")
        broken = next(n for n in range(3) if place(home, "t", n) == "/c")
        home.files.fail("pwrite", errno.EIO, path="/c/", times=-1)
        await user.try_to_produce("t", b"x", partition=broken)
        assert await alter(user, ("/b", "t", [healthy])) == {("t", healthy): ErrorCode.KAFKA_STORAGE_ERROR}
