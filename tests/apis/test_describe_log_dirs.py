"""DescribeLogDirs (35): where partitions lie, how big they are, and how much room is left."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from pykafka_broker.apis.describe_log_dirs import describe_log_dirs
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from pykafka_broker.testing.home import DATA, Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every


def asking(*topics: tuple[str, list[int]], everything: bool = False) -> DescribeLogDirsRequest:
    named = [DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in topics]
    return DescribeLogDirsRequest(topics=None if everything else named)


def sizes(answer: Any) -> dict[tuple[str, int], int]:
    """The size of every partition shown."""
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", every(describe_log_dirs))
async def test_partitions_are_listed_with_their_size_in_their_directory(user: User, version: int) -> None:
    await user.create_topic("t", 2)
    await user.produce("t", b"x" * 100)

    answer = await user.send(asking(everything=True), version)

    [directory] = answer.results
    assert (directory.error_code, directory.log_dir) == (0, DATA)
    shown = sizes(answer)
    assert shown["t", 0] > 100
    assert shown["t", 1] == 0
    if version >= 4:
        assert directory.total_bytes >= directory.usable_bytes > 0
    else:
        assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


@pytest.mark.parametrize("version", ends(describe_log_dirs))
async def test_only_the_partitions_asked_for_are_shown_and_directories_always(
    user: User, version: int
) -> None:
    await user.create_topic("t", 3)

    some = await user.send(asking(("t", [1, 9]), ("missing", [0])), version)
    none = await user.send(asking(), version)

    assert set(sizes(some)) == {("t", 1)}
    assert (len(none.results), sizes(none)) == (1, {})


async def test_every_directory_is_listed() -> None:
    async with Home({"log.dirs": "/first,/second"}, data_dir=None).running() as user:
        answer = await user.send(asking(), 5)

        assert [directory.log_dir for directory in answer.results] == ["/first", "/second"]


@pytest.mark.parametrize("version", ends(describe_log_dirs))
async def test_a_directory_that_failed_is_listed_with_a_storage_error(version: int) -> None:
    home = Home({"log.dirs": "/first,/second"}, data_dir=None)
    async with home.running() as user:
        await user.create_topic("t", 2)
        home.files.fail("pwrite", errno.EIO, path="/second/t-")
        await user.try_to_produce("t", b"v", partition=0)
        await user.try_to_produce("t", b"v", partition=1)

        answer = await user.send(asking(everything=True), version)

        failed = {directory.log_dir: directory.error_code for directory in answer.results}
        assert failed == {"/first": 0, "/second": ErrorCode.KAFKA_STORAGE_ERROR}
