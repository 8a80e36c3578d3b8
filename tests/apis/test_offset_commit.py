"""OffsetCommit (8): groups store how far they have read."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.offset_commit import offset_commit
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import (
    UNKNOWN_ID,
    Topic,
    committing_of,
    coordinated,
    ends,
    every,
    joining_of,
    offsets_of,
    only_member,
    partitions_of,
)
from tests.support.members import Member


async def error_of(user: User, request: Any, version: int = 9) -> int:
    [answer] = partitions_of(await user.send(request, version))
    error: int = answer.error_code
    return error


async def stored(user: User, group: str = "g", topic: str = "t") -> tuple[int, int, str]:
    """Offset, leader epoch and metadata of partition 0."""
    [found] = (await user.send(offsets_of(group, (topic, [0])), 9)).groups
    [partition] = found.topics[0].partitions
    return partition.committed_offset, partition.committed_leader_epoch, partition.metadata


async def topic_at(user: User, version: int, name: str = "t") -> Topic:
    await coordinated(user)
    topic_id = await user.create_topic(name)
    return topic_id if version >= 10 else name


@pytest.mark.parametrize("version", every(offset_commit))
async def test_what_is_committed_is_kept_with_its_epoch_and_metadata(user: User, version: int) -> None:
    topic = await topic_at(user, version)
    epoch = 0 if version >= 6 else -1

    request = committing_of("g", topic, 5, metadata="why: {}", leader_epoch=epoch)

    assert await error_of(user, request, version) == 0
    assert await stored(user) == (5, epoch, "why: {}")


@pytest.mark.parametrize("version", ends(offset_commit))
async def test_members_commit_in_their_generation(user: User, version: int) -> None:
    topic = await topic_at(user, version)
    member = await only_member(user, "g")

    assert await error_of(user, committing_of("g", topic, 5, member=Member(member, 1)), version) == 0
    assert (await stored(user))[0] == 5


@pytest.mark.parametrize(
    ("who", "error"),
    [
        pytest.param({"generation": 2}, ErrorCode.ILLEGAL_GENERATION, id="generation"),
        pytest.param({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID, id="member"),
        pytest.param({"member_id": "", "generation": -1}, ErrorCode.UNKNOWN_MEMBER_ID, id="no member"),
        pytest.param({"instance": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID, id="instance"),
    ],
)
@pytest.mark.parametrize("version", ends(offset_commit, since=7))
async def test_only_its_members_commit_for_a_group_with_members(
    user: User, version: int, who: dict[str, Any], error: ErrorCode
) -> None:
    topic = await topic_at(user, version)
    member = Member(await only_member(user, "g"), 1)._replace(**who)

    assert await error_of(user, committing_of("g", topic, 5, member=member), version) == error
    assert (await stored(user))[0] == -1


@pytest.mark.parametrize(("version", "error"), [(2, 22), (8, 22), (9, 69), (10, 69)])
async def test_a_generation_of_an_unknown_group(user: User, version: int, error: int) -> None:
    topic = await topic_at(user, version)

    request = committing_of("g", topic, 5, member=Member("m", 3))

    assert await error_of(user, request, version) == error


async def test_commits_between_join_and_assignment_are_refused(user: User) -> None:
    await topic_at(user, 9)
    member = (await user.send(joining_of("g"), 3)).member_id

    request = committing_of("g", "t", 5, member=Member(member, 1))

    assert await error_of(user, request) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", ends(offset_commit))
async def test_unknown_partitions_are_refused_beside_the_known_ones(user: User, version: int) -> None:
    topic = await topic_at(user, version)
    request = committing_of("g", topic, 5)
    request.topics += committing_of("g", topic, 5, 9).topics
    request.topics += committing_of("g", UNKNOWN_ID if version >= 10 else "missing", 5).topics

    errors = sorted(p.error_code for p in partitions_of(await user.send(request, version)))

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [0, missing, ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else missing]
    assert (await stored(user))[0] == 5


async def test_the_id_of_a_topic_is_unknown_after_another_has_got_its_name(user: User) -> None:
    before = await topic_at(user, 10)
    assert await error_of(user, committing_of("g", before, 5), 10) == 0
    await user.delete_topic("t")
    now = await user.create_topic("t")

    assert await error_of(user, committing_of("g", before, 6), 10) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await user.committed("g") == {}
    assert await error_of(user, committing_of("g", now, 1), 10) == 0
    assert await user.committed("g") == {("t", 0): 1}


@pytest.mark.parametrize("version", ends(offset_commit))
async def test_a_topic_named_twice_is_answered_twice_and_gets_the_last_offset(
    user: User, version: int
) -> None:
    topic = await topic_at(user, version)
    request = committing_of("g", topic, 5)
    request.topics += committing_of("g", topic, 6).topics

    answer = await user.send(request, version)

    assert [[p.error_code for p in each.partitions] for each in answer.topics] == [[0], [0]]
    assert (await stored(user))[0] == 6


@pytest.mark.parametrize("version", ends(offset_commit))
async def test_metadata_has_a_limit(user: User, version: int) -> None:
    topic = await topic_at(user, version)

    most = committing_of("g", topic, 5, metadata="x" * 4096)
    more = committing_of("g", topic, 6, metadata="x" * 4097)

    assert await error_of(user, most, version) == 0
    assert await error_of(user, more, version) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert (await stored(user))[0] == 5


async def test_no_metadata_and_empty_metadata_are_the_same(user: User) -> None:
    await topic_at(user, 9)

    assert await error_of(user, committing_of("g", "t", 5, metadata=None)) == 0
    assert (await stored(user))[2] == ""


async def test_a_group_without_a_name_may_commit_and_an_offset_below_0_too(user: User) -> None:
    await topic_at(user, 9)

    assert await error_of(user, committing_of("", "t", -5)) == 0
    assert (await stored(user, ""))[0] == -5


async def test_commits_outlive_a_restart_and_a_crash(home: Home) -> None:
    async with home.running() as user:
        await topic_at(user, 9)
        await error_of(user, committing_of("g", "t", 5, metadata="m"))
        after_crash = home.killed()
    for later in (home, after_crash):
        async with later.running() as user:
            assert await stored(user) == (5, -1, "m")


async def test_offsets_of_an_empty_group_expire(home: Home) -> None:
    home.overrides |= {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "60000"}
    async with home.running() as user:
        await topic_at(user, 9)
        await error_of(user, committing_of("g", "t", 5))

        await home.clock.pass_time(3 * 60_000)

        assert (await stored(user))[0] == -1


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    await user.create_topic("t")

    assert await error_of(user, committing_of("g", "t", 5)) == ErrorCode.NOT_COORDINATOR
