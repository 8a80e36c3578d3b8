"""A follower that lacks trimmed records starts over from a snapshot of the leader."""

from __future__ import annotations

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.log_view import Batch, LogView, Membership, SnapshotFile, SnapshotId
from pykafka_broker.raft.core.messages import Current, Fetch, FetchSnapshot, FetchSnapshotAnswer
from pykafka_broker.raft.core.roles import Download
from pykafka_broker.raft.core.state import (
    Chunk,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotsChanged,
    Unanswered,
)
from tests.raft.stories import NONE, Node, committed, fetched, following, key, voter, voters

SNAPSHOT = SnapshotId(40, 3)
LEADER = Current(3, 2, voter(2).endpoints)


def part(data: bytes, position: int, *, size: int = 8, of: SnapshotId = SNAPSHOT) -> FetchSnapshotAnswer:
    return FetchSnapshotAnswer(NONE, LEADER, of, size, position, data=data)


def downloading() -> Node:
    node = following()
    node.answer(2, fetched(snapshot_id=SNAPSHOT))
    return node


# -- the follower ----------------------------------------------------------------------------------------


def test_a_snapshot_is_asked_for_part_by_part() -> None:
    node = downloading()
    assert node.sent == {2: FetchSnapshot(3, key(1), SNAPSHOT, 0, 1 << 20)}

    node.answer(2, part(b"first", 0))
    assert node.step.receive == Chunk(SNAPSHOT, 0, b"first", is_last=False)
    assert node.sent == {2: FetchSnapshot(3, key(1), SNAPSHOT, 5, 1 << 20)}
    assert node.state.log.end_offset == 20, "the log is as it was"


def test_with_the_last_part_the_log_starts_anew_and_all_before_is_committed() -> None:
    node = downloading()
    node.answer(2, part(b"first", 0))
    node.answer(2, part(b"end", 5))
    assert node.step.receive == Chunk(SNAPSHOT, 5, b"end", is_last=True)
    assert node.sent == {}, "what it would fetch for is known when the snapshot is installed"

    log = LogView(
        40,
        3,
        (Membership(voters(1, 2), 39),),
        start_offset=40,
        flushed_offset=40,
        snapshots=(SnapshotFile(SNAPSHOT, 8),),
    )
    node.take(SnapshotInstalled(log))
    assert (node.step.advance, node.state.log, node.state.high_watermark) == (40, log, 40)
    assert node.sent == {2: Fetch(3, key(1), 40, 3, 500, 40)}
    assert [log.end_of_epoch(3), log.end_of_epoch(2)] == [(3, 40), (-1, 40)]

    node.take(SnapshotsChanged(10, (SnapshotFile(SnapshotId(20, 3), 9),)))
    assert node.state.log == log, "while the log was replaced, its node wrote a snapshot of the former one"
    both = (*log.snapshots, SnapshotFile(SnapshotId(41, 3), 9))
    node.take(SnapshotsChanged(40, both))
    assert node.state.log == log._replace(snapshots=both), "no record follows the snapshot yet"


@pytest.mark.parametrize(
    "answer",
    [part(b"first", 3), part(b"", 0), part(b"first", 0, of=SnapshotId(41, 3))],
)
def test_a_part_that_was_not_asked_for_is_not_taken(answer: FetchSnapshotAnswer) -> None:
    node = downloading()
    node.answer(2, answer)
    assert (node.step.receive, node.follower.download) == (None, Download(SNAPSHOT))


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_the_leader_has_no_more_is_forgotten(error: ErrorCode) -> None:
    node = downloading()
    node.answer(2, FetchSnapshotAnswer(error, LEADER))
    assert node.follower.download is None
    assert node.sent == {2: Fetch(3, key(1), 20, 3, 500, -1)}


def test_a_damaged_snapshot_is_fetched_again_after_a_pause() -> None:
    node = downloading()
    node.answer(2, part(b"complete", 0))
    node.take(SnapshotRefused())
    assert (node.follower.download, node.state.log.end_offset, node.sent) == (None, 20, {})

    node.wait(999)
    assert node.sent == {}
    node.wait(1)
    assert node.sent == {2: Fetch(3, key(1), 20, 3, 500, -1)}


def test_a_download_that_records_have_overtaken_ends() -> None:
    node = downloading()
    [send] = node.step.send
    node.take(Unanswered(2, send.request_id))
    assert list(node.sent) == [-4], "while the leader cannot be reached, others are asked"

    node.answer(-4, fetched(batches=(Batch(20, 45, 3),)))
    assert (node.state.log.end_offset, node.follower.download) == (45, None)


def test_a_leader_loads_no_snapshot() -> None:
    node = committed()
    with pytest.raises(IllegalState, match="loads no snapshot"):
        node.take(SnapshotInstalled(node.state.log))


# -- the leader ------------------------------------------------------------------------------------------


def serving() -> Node:
    node = committed()
    node.take(
        SnapshotsChanged(0, (SnapshotFile(SnapshotId(10, 1), 100), SnapshotFile(SnapshotId(20, 3), 200)))
    )
    return node


def ask(snapshot_id: SnapshotId, position: int, max_bytes: int = 50, epoch: int = 4) -> FetchSnapshot:
    return FetchSnapshot(epoch, key(2), snapshot_id, position, max_bytes)


def test_the_leader_hands_out_the_part_that_is_asked_for() -> None:
    node = serving()
    here = Current(4, 1, voter(1).endpoints)
    assert node.ask(ask(SnapshotId(20, 3), 150)) == FetchSnapshotAnswer(
        NONE, here, SnapshotId(20, 3), 200, 150, 50
    )
    whole = node.ask(ask(SnapshotId(10, 1), 0, max_bytes=1 << 30))
    assert isinstance(whole, FetchSnapshotAnswer) and whole.max_bytes == 1 << 20


@pytest.mark.parametrize(
    "request_, error",
    [
        (ask(SnapshotId(30, 3), 0), ErrorCode.SNAPSHOT_NOT_FOUND),
        (ask(SnapshotId(0, 0), 0), ErrorCode.SNAPSHOT_NOT_FOUND),
        (ask(SnapshotId(10, 1), 100), ErrorCode.POSITION_OUT_OF_RANGE),
        (ask(SnapshotId(10, 1), -1), ErrorCode.POSITION_OUT_OF_RANGE),
        (ask(SnapshotId(10, 1), 0, epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (ask(SnapshotId(10, 1), 0, epoch=5), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_part_that_is_not_there_is_refused(request_: FetchSnapshot, error: ErrorCode) -> None:
    answer = serving().ask(request_)
    assert answer == FetchSnapshotAnswer(error, Current(4, 1, voter(1).endpoints))


def test_who_downloads_keeps_the_leader_in_office() -> None:
    node = serving()
    for _ in range(6):
        node.wait(1000)
        node.ask(ask(SnapshotId(10, 1), 0))
    assert node.role.epoch == 4


def test_trimming_forgets_epochs_and_voters_that_the_snapshot_holds() -> None:
    node = serving()
    node.take(SnapshotsChanged(20, (SnapshotFile(SnapshotId(20, 3), 200),)))
    log = node.state.log
    assert (log.start_offset, log.epochs, log.memberships) == (20, ((4, 20),), (log.membership,))
    assert log.end_of_epoch(3) == (3, 20)
