"""WriteShareGroupState (85): leaders of partitions store what has changed."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.write_share_group_state import write_share_group_state
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.sharing import DONE, Sharing, error_of

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@pytest.mark.parametrize("version", every(write_share_group_state))
async def test_what_is_written_is_laid_over_what_is_known(user: User, version: int) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize()
    assert await sharing.write((0, 9, AVAILABLE, 1), version=version, complete=0) == {0: DONE}
    assert await sharing.write((2, 3, ACKNOWLEDGED, 2), version=version, complete=2) == {0: DONE}
    assert await sharing.write(start_offset=1, version=version, complete=1) == {0: DONE}

    batches = [(1, 1, AVAILABLE, 1), (2, 3, ACKNOWLEDGED, 2), (4, 9, AVAILABLE, 1)]
    assert await sharing.read() == {0: (0, None, 1, 1, batches)}
    assert await sharing.summary() == {0: (0, None, 1, 0, 1, 1 if version >= 1 else -1)}


async def test_a_writer_that_does_not_know_of_a_reset_is_fenced(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(state_epoch=2)
    fenced = ErrorCode.FENCED_STATE_EPOCH
    assert await sharing.write(state_epoch=1) == {0: (fenced, fenced.message)}
    assert await sharing.write(state_epoch=2) == {0: DONE}


async def test_what_was_never_begun_cannot_be_written(user: User) -> None:
    sharing = await Sharing.of(user)
    text = "Write operation on uninitialized share partition not allowed."
    assert await sharing.write(partition=1) == {1: (ErrorCode.INVALID_REQUEST, text)}
    assert await sharing.write(partition=1, group="") == {}


async def test_batches_that_no_leader_writes_are_refused(user: User) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize()
    answer = await sharing.write((0, 10, AVAILABLE, 1), (5, 2, AVAILABLE, 2))
    assert error_of(answer) == ErrorCode.INVALID_REQUEST
    assert await sharing.read() == {0: (0, None, 1, 0, [])}


async def test_what_is_written_survives_a_kill(home: Home) -> None:
    home.overrides["share.coordinator.snapshot.update.records.per.snapshot"] = "3"
    async with home.running() as user:
        sharing = await Sharing.of(user)
        await sharing.initialize()
        for offset in range(10):
            await sharing.write((offset, offset, ARCHIVED, 5), complete=offset + 1)
        after = home.killed()
    async with after.running() as user:
        again = Sharing(user, sharing.topic_id)
        assert await again.read() == {0: (0, None, 1, 0, [(0, 9, ARCHIVED, 5)])}
        assert await again.summary() == {0: (0, None, 1, 0, 0, 10)}
