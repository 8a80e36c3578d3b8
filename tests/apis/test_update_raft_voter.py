"""UpdateRaftVoter (82): a voter says where it is reached and which levels of kraft.version it supports."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import UpdateVoter
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.wire import update_raft_voter as wire
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of


async def test_the_answer_names_the_leader_whatever_is_refused() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        stranger = Voter(OBSERVER, {"CONTROLLER": ("127.0.0.1", 1)})
        for asked, scope, error in (
            (UpdateVoter(observer.epoch, stranger), Scope("another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
            (UpdateVoter(0, stranger), observer.scope, ErrorCode.FENCED_LEADER_EPOCH),
            (UpdateVoter(9, stranger), observer.scope, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (
                UpdateVoter(observer.epoch, stranger._replace(endpoints={"OTHER": ("127.0.0.1", 1)})),
                observer.scope,
                ErrorCode.INVALID_REQUEST,
            ),
            (
                UpdateVoter(observer.epoch, stranger._replace(key=ReplicaKey(2))),
                observer.scope,
                ErrorCode.INVALID_REQUEST,
            ),
            (UpdateVoter(observer.epoch, stranger), observer.scope, ErrorCode.VOTER_NOT_FOUND),
        ):
            response = await user.send(wire.request(asked, scope), 0)
            answer = wire.read_response(response, observer.scope)
            assert (answer.error, answer.current.epoch, answer.current.leader_id) == (
                error,
                observer.epoch,
                1,
            )
            assert "CONTROLLER" in answer.current.endpoints


async def test_a_voter_that_has_moved_is_described_at_its_new_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        key = ReplicaKey(1, home.broker.node.logs.dirs.metadata.directory_id)
        moved = Voter(key, {"CONTROLLER": ("elsewhere", 9093)})
        response = await user.send(wire.request(UpdateVoter(observer.epoch, moved), observer.scope), 0)
        assert response.error_code == ErrorCode.NONE
        described = home.broker.node.raft.describe_quorum()
        assert described.endpoints == {1: moved.endpoints}
    assert "Updated voter 1 of the metadata quorum, as User:ANONYMOUS at 127.0.0.1 asked." in caplog.messages
