"""ReadShareGroupStateSummary (87): where a share group is."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.read_share_group_state_summary import read_share_group_state_summary
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.sharing import Sharing


@pytest.mark.parametrize("version", every(read_share_group_state_summary))
async def test_epochs_start_offset_and_count_are_told(user: User, version: int) -> None:
    sharing = await Sharing.of(user)
    await sharing.initialize(state_epoch=2)
    await sharing.read(leader_epoch=7)
    await sharing.write((5, 5, 2, 1), state_epoch=2, start_offset=5, complete=1)
    assert await sharing.summary(version=version) == {0: (0, None, 2, 7, 5, 1 if version >= 1 else -1)}


async def test_what_was_never_begun_is_at_no_offset(user: User) -> None:
    sharing = await Sharing.of(user)
    assert await sharing.summary(0, 1) == dict.fromkeys((0, 1), (0, None, 0, 0, -1, -1))
    assert await sharing.summary(0, group="") == {}


async def test_the_topic_must_be_there(user: User) -> None:
    sharing = await Sharing.of(user)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await sharing.summary(2) == {2: (unknown, unknown.message, 0, 0, 0, -1)}
    await user.delete_topic("orders")
    assert await sharing.summary(0) == {0: (unknown, unknown.message, 0, 0, 0, -1)}
