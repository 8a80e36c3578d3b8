"""BeginQuorumEpoch (53): another node says that it leads."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import BeginQuorumEpoch, Fetch
from pykafka_broker.raft.wire import begin_quorum_epoch
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of


async def test_a_leader_of_an_older_epoch_is_fenced() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        older = begin_quorum_epoch.request(BeginQuorumEpoch(0, 2, {}, None), observer.scope)
        for version in (0, 1):
            response = await user.send(older, version)
            refused = begin_quorum_epoch.read_response(response, observer.scope)
            assert refused.error is ErrorCode.FENCED_LEADER_EPOCH
            assert (refused.current.epoch, refused.current.leader_id) == (observer.epoch, 1)


async def test_a_stranger_who_claims_to_lead_keeps_the_controller_for_a_few_seconds_at_most() -> None:
    home = combined_home()
    async with home.running() as client, await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        claim = BeginQuorumEpoch(observer.epoch + 10, 7, {"CONTROLLER": ("localhost", 1)}, None)
        response = await user.send(begin_quorum_epoch.request(claim, observer.scope), 1)
        told = begin_quorum_epoch.read_response(response, observer.scope)
        assert (told.error, told.current.leader_id) == (ErrorCode.NONE, 7)
        await home.clock.pass_time(5_000)
        answer = await observer.ask(Fetch(0, OBSERVER, 0, 0, 0))
        assert (answer.current.leader_id, answer.current.epoch > claim.epoch) == (1, True)
        await client.create_topic("orders")
        assert "orders" in home.broker.node.image.topics
