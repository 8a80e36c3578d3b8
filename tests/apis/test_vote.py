"""Vote (52): what a leader answers to those who would have its place."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import Vote
from pykafka_broker.raft.wire import vote
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of


async def test_a_leader_gives_no_vote_for_its_own_epoch_and_names_itself() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        for version in (0, 1, 2):
            asked = vote.request(Vote(observer.epoch, OBSERVER, None, 0, 0), observer.scope)
            answer = vote.read_response(await user.send(asked, version), observer.scope)
            assert (answer.error, answer.granted) == (ErrorCode.NONE, False)
            assert (answer.current.epoch, answer.current.leader_id) == (observer.epoch, 1)
            assert bool(answer.current.endpoints) == (version > 0)


async def test_a_candidate_of_another_cluster_is_refused() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        asked = vote.request(Vote(1, OBSERVER, None, 0, 0), Scope("another"))
        assert (await user.send(asked, 2)).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
