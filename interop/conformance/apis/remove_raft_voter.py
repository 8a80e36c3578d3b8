"""RemoveRaftVoter: what refuses a removal, on listeners of both kinds. The only voter stays."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest

DIRECTORY = bytes(range(16))


def removing(**fields: Any) -> RemoveRaftVoterRequest:
    values: dict[str, Any] = {
        "cluster_id": None,
        "voter_id": 9,
        "voter_directory_id": DIRECTORY,
        **fields,
    }
    return RemoveRaftVoterRequest(**values)


@conversation
def another_cluster(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(removing(cluster_id="another", voter_id=-1), E.INCONSISTENT_CLUSTER_ID)


@conversation
def no_copy_of_the_log(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(removing(voter_id=-1), E.INVALID_REQUEST)
        asked.ask(removing(voter_id=1, voter_directory_id=bytes(16)), E.INVALID_REQUEST)


@conversation
def a_node_that_does_not_vote(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(removing(), E.VOTER_NOT_FOUND)


@conversation
def a_disk_that_the_voter_does_not_have(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(removing(voter_id=1), E.VOTER_NOT_FOUND)
