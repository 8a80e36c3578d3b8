"""InitializeShareGroupState (83): the state of share partitions begins."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.sharing import DONE, GROUP, Sharing, error_of

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_group_begins_where_it_is_told(user: User) -> None:
    sharing = await Sharing.of(user)
    assert await sharing.initialize(0, 1, state_epoch=1, start_offset=5) == {0: DONE, 1: DONE}
    assert await sharing.read(0, 1) == dict.fromkeys((0, 1), (0, None, 1, 5, []))


async def test_each_partition_has_its_own_error(user: User) -> None:
    sharing = await Sharing.of(user)
    answer = await sharing.initialize(0, 2, -1)
    assert answer == {
        0: DONE,
        2: (UNKNOWN, UNKNOWN.message),
        -1: (ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number."),
    }


async def test_an_older_reset_is_fenced(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(state_epoch=3)
    assert error_of(await sharing.initialize(state_epoch=2)) == ErrorCode.FENCED_STATE_EPOCH
    assert error_of(await sharing.initialize(state_epoch=3, start_offset=-1)) == ErrorCode.NONE
    assert await sharing.summary() == {0: (0, None, 3, 0, -1, -1)}


async def test_there_is_no_coordinator_before_its_topic(user: User) -> None:
    sharing = Sharing(user, await user.create_topic("orders"))
    code = ErrorCode.NOT_COORDINATOR
    text = f"Unable to initialize share group state: {code.message}"
    assert await sharing.initialize() == {0: (code, text)}


async def test_a_request_about_nothing_is_answered_with_nothing(user: User) -> None:
    sharing = await Sharing.of(user)
    assert await sharing.initialize(group="") == {}
    partition = PartitionData(partition=0, state_epoch=1, start_offset=0)
    topics = [
        InitializeStateData(topic_id=bytes(16), partitions=[]),
        InitializeStateData(topic_id=sharing.topic_id, partitions=[partition]),
    ]
    empty = InitializeShareGroupStateRequest(group_id=GROUP, topics=topics[:1])
    assert (await user.send(empty, 0)).results == []
    # Unlike the other four requests, this one may have topics without partitions beside others.
    half = InitializeShareGroupStateRequest(group_id=GROUP, topics=topics)
    assert sharing.results(await user.send(half, 0)) == {0: DONE}


async def test_what_was_begun_is_there_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        sharing = await Sharing.of(user)
        await sharing.initialize(1, start_offset=7)
    async with home.running() as user:
        again = Sharing(user, sharing.topic_id)
        assert await again.read(1) == {1: (0, None, 1, 7, [])}
