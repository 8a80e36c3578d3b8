"""AddRaftVoter (80): a copy of the metadata log becomes a voter, on listeners of both kinds."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of

AT_NOBODY = Listener(name="CONTROLLER", host="127.0.0.1", port=1)


def adding(**fields: Any) -> AddRaftVoterRequest:
    values: dict[str, Any] = {
        "cluster_id": None,
        "timeout_ms": 1_000,
        "voter_id": OBSERVER.node_id,
        "voter_directory_id": OBSERVER.directory_id,
        "listeners": [AT_NOBODY],
        **fields,
    }
    return AddRaftVoterRequest(**values)


async def test_requests_that_cannot_be_are_refused_alike_on_both_kinds_of_listeners() -> None:
    home = combined_home()
    async with (
        home.running(),
        await User.connect(controller_address(home.broker)) as controllers,
        await User.connect(home.broker.bootstrap_servers) as brokers,
    ):
        cluster_id = home.broker.node.image.cluster_id
        for user in (controllers, brokers):
            for version in (0, 1):
                assert await user.send(adding(cluster_id="another"), version) == AddRaftVoterResponse(
                    error_code=ErrorCode.INCONSISTENT_CLUSTER_ID,
                    error_message=f'The given id "another" doesn\'t match the cluster id "{cluster_id}"',
                )
                assert await user.send(adding(voter_id=-1), version) == AddRaftVoterResponse(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message="Add voter request didn't include a valid voter",
                )
                duplicate = await user.send(adding(voter_id=1), version)
                assert duplicate.error_code == ErrorCode.DUPLICATE_VOTER


async def test_a_replica_that_is_not_reached_does_not_become_a_voter() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        await observer.fetch()
        refused = await user.send(adding(), 1)
        assert refused == AddRaftVoterResponse(
            error_code=ErrorCode.REQUEST_TIMED_OUT,
            error_message="Aborted add voter operation for since API_VERSIONS returned an error "
            "BROKER_NOT_AVAILABLE",
        )
        assert (await user.send(adding(), 1)).error_code == ErrorCode.REQUEST_TIMED_OUT
