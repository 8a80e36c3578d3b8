"""DeleteShareGroupState (86): the state of share partitions is forgotten."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.sharing import DONE, Sharing, error_of


async def test_what_is_deleted_has_to_begin_anew(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(0, 1, state_epoch=3)
    assert await sharing.delete(0) == {0: DONE}
    assert error_of(await sharing.read(0)) == ErrorCode.INVALID_REQUEST
    assert error_of(await sharing.read(1), 1) == ErrorCode.NONE
    assert await sharing.initialize(0, state_epoch=0) == {0: DONE}


async def test_what_is_not_known_can_be_deleted(user: User) -> None:
    sharing = await Sharing.of(user)
    assert await sharing.delete(0, 1, group="nobody") == {0: DONE, 1: DONE}


async def test_the_topic_must_be_there(user: User) -> None:
    sharing = await Sharing.of(user)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await sharing.delete(2) == {2: (unknown, unknown.message)}
    assert await sharing.delete(0, group="") == {}


async def test_what_was_deleted_is_not_there_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        sharing = await Sharing.of(user)
        await sharing.initialize(0, 1)
        await sharing.delete(1)
    async with home.running() as user:
        again = Sharing(user, sharing.topic_id)
        answer = await again.read(0, 1)
        assert (error_of(answer, 0), error_of(answer, 1)) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)
