"""EndQuorumEpoch (54): another node says that it leads no more."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import EndQuorumEpoch
from pykafka_broker.raft.wire import end_quorum_epoch
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import observer_of


async def test_the_end_of_an_older_epoch_changes_nothing() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        older = end_quorum_epoch.request(EndQuorumEpoch(0, 2, {}, ()), observer.scope)
        for version in (0, 1):
            refused = end_quorum_epoch.read_response(await user.send(older, version), observer.scope)
            assert refused.error is ErrorCode.FENCED_LEADER_EPOCH
        assert (await observer.fetch()).current.leader_id == 1


async def test_the_leader_of_the_epoch_does_not_believe_that_another_one_ends_it() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        lie = end_quorum_epoch.request(EndQuorumEpoch(observer.epoch, 2, {}, ()), observer.scope)
        refused = end_quorum_epoch.read_response(await user.send(lie, 1), observer.scope)
        assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await observer.fetch()).current.leader_id == 1
