"""The follower's side of an incremental fetch session."""

from __future__ import annotations

import random

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.fetch_session import FollowerSession, PartitionFetch, SessionRequest

A, B, C = PartitionFetch(1, 10, 1, 0), PartitionFetch(1, 20, 1, 0), PartitionFetch(2, 30, 1, 0)
NONE = ErrorCode.NONE


def established(**wanted: PartitionFetch) -> FollowerSession[str]:
    """A session 9 with these partitions, of which the leader knows."""
    session: FollowerSession[str] = FollowerSession()
    for key, one in wanted.items():
        session.wants(key, one)
    session.next_request()
    assert session.answered(NONE, 9)
    return session


def test_the_first_request_is_full_and_later_ones_name_what_has_changed() -> None:
    session: FollowerSession[str] = FollowerSession()
    session.wants("a", A)
    session.wants("b", B)
    assert session.next_request() == SessionRequest(0, 0, {"a": A, "b": B})
    assert session.answered(NONE, 9)

    session.wants("a", A)  # as before
    session.wants("b", C)
    assert session.next_request() == SessionRequest(9, 1, {"b": C})
    assert session.answered(NONE, 9)
    assert session.next_request() == SessionRequest(9, 2, {})


def test_a_partition_that_is_left_is_forgotten_once() -> None:
    session = established(a=A, b=B)

    session.forgets("a")

    assert session.next_request() == SessionRequest(9, 1, {}, ("a",))
    assert session.answered(NONE, 9)
    assert session.next_request() == SessionRequest(9, 2, {})


def test_a_partition_that_comes_back_before_the_next_request_is_not_forgotten() -> None:
    session = established(a=A)

    session.forgets("a")
    session.wants("a", A)

    assert session.next_request() == SessionRequest(9, 1, {"a": A})


def test_a_leader_that_gives_no_session_gets_full_requests() -> None:
    session: FollowerSession[str] = FollowerSession()
    session.wants("a", A)
    for _ in range(3):
        assert session.next_request() == SessionRequest(0, 0, {"a": A})
        assert session.answered(NONE, 0)


@pytest.mark.parametrize(
    "error, session_id",
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 9),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 9),
    ],
)
def test_a_session_that_the_leader_refuses_begins_anew_with_everything(
    error: ErrorCode, session_id: int
) -> None:
    session = established(a=A, b=B)
    session.wants("b", C)
    session.next_request()

    assert not session.answered(error, 0)

    assert session.next_request() == SessionRequest(session_id, 0, {"a": A, "b": C})


def test_after_a_request_without_an_answer_everything_is_told_again() -> None:
    session = established(a=A, b=B)
    session.forgets("b")
    session.next_request()

    session.failed()

    assert session.next_request() == SessionRequest(9, 0, {"a": A})


@pytest.mark.parametrize("seed", range(50))
def test_the_leader_always_has_what_the_follower_wants(seed: int) -> None:
    dice = random.Random(seed)
    session: FollowerSession[int] = FollowerSession()
    at_leader: dict[int, PartitionFetch] = {}
    session_id = 0
    for offset in range(200):
        for _ in range(dice.randrange(4)):
            key = dice.randrange(5)
            if dice.random() < 0.7:
                session.wants(key, PartitionFetch(1, offset, 1, 0))
            else:
                session.forgets(key)
        asked = session.next_request()
        fate = dice.random()
        if fate < 0.1:
            session.failed()
            continue
        if fate < 0.2:
            session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
            continue
        if asked.session_epoch == 0:
            at_leader, session_id = dict(asked.named), offset + 1
        else:
            assert asked.session_id == session_id
            at_leader.update(asked.named)
            for key in asked.forgotten:
                del at_leader[key]
        assert at_leader == session.wanted
        session.answered(NONE, session_id)
