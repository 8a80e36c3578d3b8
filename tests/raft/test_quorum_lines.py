"""What the log of a node tells of its quorum."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.raft.core.log_view import Membership
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Prospective, Unattached
from pykafka_broker.raft.quorum_lines import QuorumLines


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> QuorumLines:
    caplog.set_level(logging.INFO)
    return QuorumLines(1, now_ms=lambda: 0)


def test_each_change_of_roles_and_each_epoch_is_a_line(
    lines: QuorumLines, caplog: pytest.LogCaptureFixture
) -> None:
    for role in (
        Unattached(4),
        Prospective(4, None, {}, ReplicaKey(2, bytes(16)), frozenset({1})),
        Candidate(5, frozenset({1})),
        Leader(5, 30),
        Follower(6, 3, {}),
        Follower(7, 2, {}),
    ):
        lines.has_role(role)

    prefix = "[RaftManager id=1] Completed transition to "
    assert [record.getMessage() for record in caplog.records] == [
        prefix + "UnattachedState(epoch=4, leader=none, voted=none)",
        prefix
        + "ProspectiveState(epoch=4, leader=none, voted=2) from "
        + "UnattachedState(epoch=4, leader=none, voted=none)",
        prefix + "CandidateState(epoch=5) from ProspectiveState(epoch=4, leader=none, voted=2)",
        prefix + "Leader(epoch=5, epochStartOffset=30) from CandidateState(epoch=5)",
        prefix + "FollowerState(epoch=6, leader=3) from Leader(epoch=5, epochStartOffset=30)",
        prefix + "FollowerState(epoch=7, leader=2) from FollowerState(epoch=6, leader=3)",
    ]


def test_a_replica_that_is_cut_off_does_not_fill_the_log(
    lines: QuorumLines, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        lines.has_role(Follower(4, 2, {}))
        lines.has_role(Prospective(4, 2, {}, None, frozenset({1})))
    assert len(caplog.records) == 3


def test_voters_are_told_when_they_change(lines: QuorumLines, caplog: pytest.LogCaptureFixture) -> None:
    first = Voter(ReplicaKey(1, bytes(16)), {"CONTROLLER": ("one", 9093)})
    second = Voter(ReplicaKey(2, bytes(16)), {"CONTROLLER": ("two", 9093)})
    lines.has_voters(Membership(VoterSet({1: first}), -1, 0))
    lines.has_voters(Membership(VoterSet({1: first}), -1, 0))
    lines.has_voters(Membership(VoterSet({1: first, 2: second}), 12, 1))

    prefix = "[RaftManager id=1] Latest set of voters is "
    assert [record.getMessage() for record in caplog.records] == [
        prefix + "[1@one:9093] of controller.quorum.voters",
        prefix + "[1@one:9093, 2@two:9093] at offset 12",
    ]


def test_a_start_that_lacks_records_says_how_many(
    lines: QuorumLines, caplog: pytest.LogCaptureFixture
) -> None:
    lines.waits(40, 9_000)
    assert [record.getMessage() for record in caplog.records] == [
        "[MetadataLoader id=1] initializeNewPublishers: The loader is still catching up because we have "
        "loaded up to offset 40, but the high water mark is 9000."
    ]


def test_the_active_controller_is_told_when_it_begins_and_ends(
    lines: QuorumLines, caplog: pytest.LogCaptureFixture
) -> None:
    lines.controller_begins(5, 31)
    lines.controller_ends(5, Follower(6, 3, {}))
    lines.controller_ends(5, Unattached(6))

    prefix = "[QuorumController id=1] "
    renounced = (
        f"{prefix}Renouncing the leadership. We were the leader in epoch 5, but in epoch 6, the leader is "
    )
    assert [record.getMessage() for record in caplog.records] == [
        prefix + "Becoming the active controller at epoch 5, next write offset 31.",
        renounced + "3.",
        renounced + "(none).",
    ]
