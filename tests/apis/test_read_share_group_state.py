"""ReadShareGroupState (84): the leader of a partition loads what leaders before it have stored."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadStateData
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.sharing import GROUP, Sharing, error_of

INVALID = ErrorCode.INVALID_REQUEST


async def test_a_new_leader_fences_the_one_before_it(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize()
    await sharing.write((0, 4, 2, 1), (5, 5, 0, 2), leader_epoch=0)

    assert await sharing.read(leader_epoch=1) == {0: (0, None, 1, 0, [(0, 4, 2, 1), (5, 5, 0, 2)])}
    assert error_of(await sharing.write(leader_epoch=0)) == ErrorCode.FENCED_LEADER_EPOCH
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    assert await sharing.read(leader_epoch=0) == {0: (fenced, fenced.message, 0, 0, [])}


async def test_the_fence_stands_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        sharing = await Sharing.of(user)
        await sharing.initialize()
        await sharing.read(leader_epoch=5)
        after = home.killed()
    async with after.running() as user:
        again = Sharing(user, sharing.topic_id)
        assert error_of(await again.read(leader_epoch=4)) == ErrorCode.FENCED_LEADER_EPOCH
        assert error_of(await again.read(leader_epoch=5)) == ErrorCode.NONE


async def test_what_was_never_begun_cannot_be_read(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(0)
    answer = await sharing.read(0, 1)
    assert answer == {
        0: (0, None, 1, 0, []),
        1: (INVALID, "Read operation on uninitialized share partition not allowed.", 0, 0, []),
    }


async def test_a_partition_that_is_named_twice_is_answered_once(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(0)
    assert await sharing.read(0, 0) == {0: (0, None, 1, 0, [])}


async def test_a_request_about_nothing_is_answered_with_nothing(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(0)
    assert await sharing.read(0, group="") == {}
    for topics in ([], [ReadStateData(topic_id=sharing.topic_id, partitions=[])]):
        request = ReadShareGroupStateRequest(group_id=GROUP, topics=topics)
        assert (await user.send(request, 0)).results == []
