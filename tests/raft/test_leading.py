"""The leader: what it answers to Fetch, what it commits, when it resigns."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.log_view import EpochEnd, SnapshotFile, SnapshotId
from pykafka_broker.raft.core.messages import Current, Fetch, FetchAnswer, Vote
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Leader, Resigned, Unattached
from pykafka_broker.raft.core.state import ElectionState, Flushed, Received, Resign, SnapshotsChanged
from tests.raft.stories import (
    LOG,
    NONE,
    SETTINGS,
    append,
    committed,
    fetch,
    following,
    key,
    leading,
    log_of,
    voter,
    voters,
)

HERE = Current(4, 1, voter(1).endpoints)


def news(high_watermark: int | None = None, **answer: Any) -> FetchAnswer:
    return FetchAnswer(NONE, HERE, high_watermark, 0)._replace(**answer)


# -- Fetch -----------------------------------------------------------------------------------------------


def test_records_are_handed_out_before_they_are_committed() -> None:
    assert leading().ask(fetch(2, 20, last_epoch=3)) == news(read_from=20)


def test_a_fetch_that_finds_nothing_is_kept_until_there_is_something() -> None:
    node = leading()
    assert node.ask(fetch(2, 21, high_watermark=99)) is None

    append(node, 3, flushed=False)
    assert [reply.answer for reply in node.step.reply] == [news(21, read_from=21)]


def test_a_kept_fetch_is_answered_when_its_time_is_over() -> None:
    node = leading()
    assert node.ask(fetch(2, 21)) is None
    assert [reply.answer for reply in node.wait(500).reply] == [news(21)]


def test_a_replica_that_fetches_again_gets_the_answer_for_which_it_waits() -> None:
    node = leading()
    append(node, 1, flushed=False)
    assert node.ask(fetch(2, 22)) is None
    # It has sent this one earlier, over another connection.
    assert node.ask(fetch(2, 20, last_epoch=3)) == news(21, read_from=20)
    assert [reply.answer for reply in node.step.reply] == [news(21), news(21, read_from=20)]
    node.take(Flushed(22))
    assert node.leader.high_watermark == 21
    node.ask(fetch(2, 22))
    assert node.leader.high_watermark == 22


def test_a_fetch_is_kept_when_another_replica_or_a_reader_fetches() -> None:
    node = leading()
    assert node.ask(fetch(-1, 21)) is None
    assert node.ask(fetch(-1, 21)) is None
    assert node.ask(fetch(3, 21)) is None
    assert len(node.leader.parked) == 3


def test_a_follower_in_step_learns_at_once_that_the_high_watermark_has_moved() -> None:
    node = committed()
    append(node, 1, flushed=False)
    assert node.ask(fetch(3, 22, high_watermark=21)) is None
    assert node.ask(fetch(2, 22, high_watermark=21)) == news(22)
    assert [reply.answer for reply in node.step.reply] == [news(22), news(22)]


def test_before_version_18_a_fetch_waits_for_records_alone() -> None:
    node = committed()
    assert node.ask(fetch(2, 21)) is None


@pytest.mark.parametrize(
    "request_, error",
    [
        (fetch(2, 20, epoch=3, last_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(2, 20, epoch=5), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(2, -1), ErrorCode.INVALID_REQUEST),
        (fetch(2, 20, last_epoch=5), ErrorCode.INVALID_REQUEST),
        (fetch(2, 20, last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (fetch(2, 20)._replace(max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
        (fetch(1, 20), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_fetch_that_this_leader_cannot_serve_is_refused(request_: Fetch, error: ErrorCode) -> None:
    assert leading().ask(request_) == FetchAnswer(error, HERE, start_offset=0)


def test_a_follower_names_the_leader_to_those_who_ask() -> None:
    node = following()
    answer = node.ask(Fetch(3, key(7), 0, 0, 500))
    assert answer == FetchAnswer(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(3, 2, voter(2).endpoints), start_offset=0
    )


@pytest.mark.parametrize(
    "offset, last_epoch, diverging",
    [
        (0, 0, None),
        (10, 1, None),
        (11, 1, EpochEnd(1, 10)),
        (20, 3, None),
        (15, 2, EpochEnd(1, 10)),
        (25, 3, EpochEnd(3, 20)),
        (5, 0, EpochEnd(0, 0)),
    ],
)
def test_a_log_that_is_another_is_told_from_where_on(
    offset: int, last_epoch: int, diverging: EpochEnd | None
) -> None:
    answer = leading().ask(fetch(2, offset, last_epoch))
    assert isinstance(answer, FetchAnswer)
    assert (answer.diverging, answer.read_from) == (diverging, offset if diverging is None else None)


def test_who_needs_records_that_are_trimmed_is_sent_for_the_snapshot() -> None:
    node = committed()
    oldest, newest = SnapshotId(10, 1), SnapshotId(20, 3)
    node.take(SnapshotsChanged(10, (SnapshotFile(oldest, 100), SnapshotFile(newest, 200))))

    def snapshot_for(offset: int, last_epoch: int) -> SnapshotId | None:
        answer = node.ask(fetch(2, offset, last_epoch))
        assert isinstance(answer, FetchAnswer)
        return answer.snapshot_id

    assert [snapshot_for(0, 0), snapshot_for(5, 1), snapshot_for(10, 0)] == [newest] * 3
    assert [snapshot_for(10, 1), snapshot_for(20, 3)] == [None, None]


def test_a_snapshot_from_before_the_start_of_the_log_counts_no_more() -> None:
    node = committed()
    left_over, base = SnapshotId(5, 1), SnapshotId(20, 3)
    node.take(SnapshotsChanged(20, (SnapshotFile(left_over, 100), SnapshotFile(base, 200))))
    assert node.ask(fetch(2, 20, last_epoch=3)) == news(21, start_offset=20, read_from=20)


# -- the high watermark ----------------------------------------------------------------------------------


def test_records_of_earlier_leaders_are_committed_with_the_first_of_this_one() -> None:
    node = leading()
    node.ask(fetch(2, 20, last_epoch=3))
    assert (node.step.advance, node.leader.high_watermark) == (None, None)
    node.ask(fetch(2, 21))
    assert (node.step.advance, node.leader.high_watermark) == (21, 21)


def test_a_leader_counts_its_own_records_once_they_are_on_disk() -> None:
    node = committed()
    append(node, 1, flushed=False)
    node.ask(fetch(2, 22))
    assert node.step.advance is None
    assert node.take(Flushed(22)).advance == 22


def test_a_majority_without_the_leaders_disk_commits_too() -> None:
    node = committed()
    append(node, 1, flushed=False)
    node.ask(fetch(2, 22))
    node.ask(fetch(3, 22))
    assert node.step.advance == 22


def test_observers_and_readers_do_not_count() -> None:
    node = leading()
    node.ask(fetch(7, 21))
    node.ask(fetch(2, 21)._replace(replica=ReplicaKey(2, b"another disk....")))
    node.ask(fetch(-1, 21)._replace(replica=ReplicaKey(-1)))
    assert node.leader.high_watermark is None
    assert len(node.leader.progress) == 2


def test_with_kraft_version_0_a_voter_counts_by_its_id() -> None:
    static = voters(1, 2, 3)
    static = type(static)({n: v._replace(key=ReplicaKey(n)) for n, v in static.voters.items()})
    node = leading(log_of((3, 0), end=20, among=static, kraft_version=0))
    node.ask(fetch(2, 21))
    assert node.step.advance == 21


# -- leading no more -------------------------------------------------------------------------------------


def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    node = committed()
    node.wait(2900)
    assert isinstance(node.role, Leader)
    node.ask(fetch(2, 21))
    node.wait(2900)
    assert isinstance(node.role, Leader)
    node.wait(100)
    assert isinstance(node.role, Resigned)


def test_observers_do_not_keep_a_leader_in_office() -> None:
    node = committed()
    for _ in range(6):
        node.wait(500)
        node.ask(fetch(7, 21))
    assert isinstance(node.role, Resigned)


def test_kept_fetches_are_refused_when_the_leader_goes() -> None:
    node = leading()
    assert node.ask(fetch(2, 21)) is None
    node.take(Received(99, Vote(9, key(3), key(1), 4, 99)))
    assert isinstance(node.role, Unattached) and node.role.voted == key(3)
    refused = FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(9))
    assert node.step.reply[0].answer == refused
    assert node.step.persist == ElectionState(9, -1, *key(3))


def test_a_leader_that_resigned_begins_the_next_epoch_only_after_a_while() -> None:
    node = committed()
    node.take(Resign())
    assert isinstance(node.role, Resigned) and node.step.persist is None
    node.wait(SETTINGS.election_timeout_ms)
    assert node.role.epoch == 5 and not isinstance(node.role, Resigned)


def test_a_leader_remembers_a_thousand_observers_and_those_that_fetched_last() -> None:
    node = committed(LOG)
    for node_id in range(10, 1020):
        node.now_ms += 1
        node.ask(fetch(node_id, 21)._replace(max_wait_ms=0))
    assert len(node.leader.progress) == 1002
    assert key(10) not in node.leader.progress and key(1019) in node.leader.progress
