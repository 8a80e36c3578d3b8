"""AddRaftVoter: what refuses a voter, on listeners of both kinds. None is added."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener

DIRECTORY = bytes(range(16))
#: Where nobody listens.
LISTENER = Listener(name="CONTROLLER", host="127.0.0.1", port=1)


def adding(**fields: Any) -> AddRaftVoterRequest:
    values: dict[str, Any] = {
        "cluster_id": None,
        "timeout_ms": 1_000,
        "voter_id": 9,
        "voter_directory_id": DIRECTORY,
        "listeners": [LISTENER],
        **fields,
    }
    return AddRaftVoterRequest(**values)


@conversation
def another_cluster(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(adding(cluster_id="another", voter_id=-1), E.INCONSISTENT_CLUSTER_ID)


@conversation
def no_copy_of_the_log(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(adding(voter_id=-1), E.INVALID_REQUEST)
        asked.ask(adding(voter_directory_id=bytes(16)), E.INVALID_REQUEST)
        asked.ask(adding(voter_id=1, voter_directory_id=bytes(16), listeners=[]), E.INVALID_REQUEST)


@conversation
def no_address_on_the_listener_of_controllers(talk: Talk) -> None:
    other = Listener(name="OTHER", host="127.0.0.1", port=1)
    for asked in (talk, talk.controllers()):
        asked.ask(adding(listeners=[]), E.INVALID_REQUEST)
        asked.ask(adding(listeners=[other]), E.INVALID_REQUEST)
        asked.ask(adding(voter_id=1, listeners=[other]), E.INVALID_REQUEST)


@conversation
def a_node_that_votes_already(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(adding(voter_id=1), E.DUPLICATE_VOTER)


@conversation(alone=True)
def a_replica_that_is_not_reached(talk: Talk) -> None:
    for asked in (talk, talk.controllers()):
        asked.ask(adding(), E.REQUEST_TIMED_OUT)
