"""UpdateRaftVoter: what refuses the new entry of a voter. None is written."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)

LISTENER = Listener(name="CONTROLLER", host="127.0.0.1", port=1)


def levels(least: int, greatest: int) -> KRaftVersionFeature:
    return KRaftVersionFeature(min_supported_version=least, max_supported_version=greatest)


def updating(epoch: int, **fields: Any) -> UpdateRaftVoterRequest:
    values: dict[str, Any] = {
        "cluster_id": None,
        "current_leader_epoch": epoch,
        "voter_id": 9,
        "voter_directory_id": bytes(range(16)),
        "listeners": [LISTENER],
        "kraft_version_feature": levels(0, 1),
        **fields,
    }
    return UpdateRaftVoterRequest(**values)


@conversation
def another_cluster(talk: Talk) -> None:
    talk.controllers().ask(updating(0, cluster_id="another"), E.INCONSISTENT_CLUSTER_ID)


@conversation
def an_epoch_that_is_not_now(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(updating(0, voter_id=-1), E.FENCED_LEADER_EPOCH)
    controllers.ask(updating(1_000, voter_id=-1), E.UNKNOWN_LEADER_EPOCH)


@conversation
def an_entry_that_cannot_be(talk: Talk) -> None:
    epoch = talk.quorum_epoch()
    controllers = talk.controllers()
    controllers.ask(updating(epoch, voter_id=-1), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, voter_directory_id=bytes(16)), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, listeners=[]), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, kraft_version_feature=levels(-1, 1)), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, kraft_version_feature=levels(1, 0)), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, kraft_version_feature=levels(0, 0)), E.INVALID_REQUEST)
    controllers.ask(updating(epoch, kraft_version_feature=levels(2, 3)), E.INVALID_REQUEST)


@conversation
def a_copy_that_does_not_vote(talk: Talk) -> None:
    epoch = talk.quorum_epoch()
    controllers = talk.controllers()
    controllers.ask(updating(epoch), E.VOTER_NOT_FOUND)
    controllers.ask(updating(epoch, voter_id=1), E.VOTER_NOT_FOUND)
