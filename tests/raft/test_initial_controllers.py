"""The voters that `--initial-controllers` names."""

from __future__ import annotations

import pytest

from pykafka_broker.log.disk.checkpoints import uuid_bytes
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.initial_controllers import parse_initial_controllers

FIRST, SECOND = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"


def test_voters_are_read_with_their_directories_in_the_order_of_their_ids() -> None:
    text = f"2@two:9094:{SECOND}, 1@[::1]:9093:{FIRST}"

    voters = parse_initial_controllers(text, "CONTROLLER")

    assert voters == VoterSet(
        {
            1: Voter(ReplicaKey(1, uuid_bytes(FIRST)), {"CONTROLLER": ("0:0:0:0:0:0:0:1", 9093)}),
            2: Voter(ReplicaKey(2, uuid_bytes(SECOND)), {"CONTROLLER": ("two", 9094)}),
        }
    )
    assert list(voters.voters) == [1, 2]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "No voters given."),
        ("1-a:1", "No @ found in dynamic voter string."),
        ("@a:1", "Invalid @ at beginning of dynamic voter string."),
        ("x@a:1", "Failed to parse node id in dynamic voter string."),
        ("-1@a:1", "Invalid negative node id -1 in dynamic voter string."),
        ("1@", "No hostname found after node id."),
        ("1@[::1", "Hostname began with left bracket, but no right bracket was found."),
        ("1@a", "No colon following hostname could be found."),
        ("1@[::1]9", "Port section must start with a colon."),
        ("1@a:9093", "No colon following port could be found."),
        ("1@a:p:x", "Failed to parse port in dynamic voter string."),
        ("1@a:65536:x", "Invalid port 65536 in dynamic voter string."),
        ("1@a:1:x", "Failed to parse directory ID in dynamic voter string."),
        (f"1@a:1:{FIRST},1@b:1:{SECOND}", "Node id 1 was specified more than once."),
    ],
)
def test_what_names_no_voters_is_refused_in_kafkas_words(text: str, error: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_initial_controllers(text, "CONTROLLER")
    assert str(refused.value) == error
