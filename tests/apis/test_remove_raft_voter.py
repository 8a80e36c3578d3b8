"""RemoveRaftVoter (81): a voter leaves the quorum, on listeners of both kinds."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address


def removing(**fields: Any) -> RemoveRaftVoterRequest:
    values: dict[str, Any] = {"cluster_id": None, "voter_id": 2, "voter_directory_id": b"2" * 16, **fields}
    return RemoveRaftVoterRequest(**values)


async def test_requests_that_cannot_be_are_refused_alike_on_both_kinds_of_listeners() -> None:
    home = combined_home()
    async with (
        home.running(),
        await User.connect(controller_address(home.broker)) as controllers,
        await User.connect(home.broker.bootstrap_servers) as brokers,
    ):
        cluster_id = home.broker.node.image.cluster_id
        for user in (controllers, brokers):
            assert await user.send(removing(cluster_id="another"), 0) == RemoveRaftVoterResponse(
                error_code=ErrorCode.INCONSISTENT_CLUSTER_ID,
                error_message=f'The given id "another" doesn\'t match the cluster id "{cluster_id}"',
            )
            assert await user.send(removing(voter_directory_id=bytes(16)), 0) == RemoveRaftVoterResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="Remove voter request didn't include a valid voter",
            )
            unknown = await user.send(removing(), 0)
            assert unknown.error_code == ErrorCode.VOTER_NOT_FOUND
            assert unknown.error_message.startswith(
                "Cannot remove voter ReplicaKey(id=2, directoryId=MjIyMjIyMjIyMjIyMjIyMg) from the set of "
                "voters [ReplicaKey(id=1, directoryId="
            )


async def test_the_only_voter_stays() -> None:
    home = combined_home()
    async with home.running(), await User.connect(home.broker.bootstrap_servers) as user:
        directory_id = home.broker.node.logs.dirs.metadata.directory_id
        refused = await user.send(removing(voter_id=1, voter_directory_id=directory_id), 0)
        assert refused.error_code == ErrorCode.VOTER_NOT_FOUND
