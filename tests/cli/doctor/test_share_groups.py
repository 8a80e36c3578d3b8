"""Share groups, judged from two looks at each."""

from __future__ import annotations

from pykafka_broker.cli.doctor.share_groups import judge, may_be_stuck
from pykafka_broker.cli.group_state import Coordinator
from pykafka_broker.cli.share_group_state import ShareGroup, ShareMember, StartOffset
from pykafka_broker.doctor.findings import Finding, Level, ok
from pykafka_broker.doctor.topics import Offsets
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.protocol.topic_partition import TopicPartition as Assigned

FIRST, SECOND = ("jobs", 0), ("jobs", 1)
OFFSETS = {FIRST: Offsets(0, 100, 100), SECOND: Offsets(0, 100, 100)}


def member(name: str, *partitions: PartitionKey) -> ShareMember:
    assignment = tuple(Assigned(*partition) for partition in partitions)
    return ShareMember(f"{name}-id", f"/{name}-host", name, None, 1, assignment)


WORKER = member("worker", FIRST)


def look(*members: ShareMember, **at: tuple[int | None, int | None]) -> ShareGroup:
    """A group: `first` and `second` are its start offset and its lag in the partitions."""
    places = {"first": FIRST, "second": SECOND}
    offsets = tuple(StartOffset(*places[name], start, 0, lag) for name, (start, lag) in at.items())
    state = "Stable" if members else "Empty"
    return ShareGroup("workers", state, "simple", 1, 1, Coordinator(1, "h", 9092), members, offsets)


def judged(before: ShareGroup, after: ShareGroup) -> Finding:
    (finding,) = judge(before, after, OFFSETS, 6.0)
    return finding


def test_a_group_that_starts_further_on_is_fine() -> None:
    finding = judged(look(WORKER, first=(10, 90)), look(WORKER, first=(20, 80)))
    assert finding == ok("groups", "workers", "Share group 'workers' is Stable: 1 member, 80 records behind.")


def test_a_group_that_deals_with_later_records_gets_on() -> None:
    assert judged(look(WORKER, first=(10, 90)), look(WORKER, first=(10, 70))).level is Level.OK


def test_a_group_at_the_end_need_not_move() -> None:
    finished = look(WORKER, first=(100, 0))
    assert judged(finished, finished).level is Level.OK
    assert not may_be_stuck(finished, OFFSETS)


def test_a_group_that_acknowledges_nothing_is_stuck() -> None:
    stuck = look(WORKER, member("other", FIRST), first=(10, 90), second=(100, 0))
    assert may_be_stuck(stuck, OFFSETS)
    finding = judged(stuck, stuck)
    assert (finding.level, finding.subject) == (Level.PROBLEM, "workers")
    assert finding.message == (
        "Share group 'workers' has not moved in jobs-0 for 6 s, and no fewer records wait there than before: "
        "90 (other at /other-host, worker at /worker-host)."
    )
    assert "share.delivery.count.limit" in finding.remedy


def test_a_broker_that_tells_no_lag_is_asked_for_the_end() -> None:
    stuck = look(WORKER, first=(10, None))
    assert judged(stuck, stuck).message.endswith("than before: 90 (worker at /worker-host).")
    assert judged(stuck, look(WORKER, first=(40, None))).level is Level.OK


def test_records_without_members_to_read_them_are_a_warning() -> None:
    left = look(first=(10, 90), second=(100, 0))
    assert not may_be_stuck(left, OFFSETS)
    finding = judged(left, left)
    assert finding.level is Level.WARNING
    assert "has no members: 90 records wait in 1 partition" in finding.message
    assert finding.remedy.endswith("pykafka-broker share-groups delete workers")


def test_a_group_without_members_at_the_end_has_done_its_work() -> None:
    done = look(first=(100, 0))
    assert judged(done, done).level is Level.OK


def test_a_group_that_has_never_acknowledged_a_record_may_have_begun_behind_them() -> None:
    silent = look(WORKER, first=(None, None))
    assert may_be_stuck(silent, OFFSETS)
    finding = judged(silent, silent)
    assert finding.level is Level.WARNING
    assert "has never acknowledged a record of jobs-0, nor in these 6 s (worker at" in finding.message
    assert "share.auto.offset.reset=latest" in finding.remedy
    assert judged(silent, look(WORKER, first=(60, 40))).level is Level.OK


def test_an_empty_partition_has_nothing_to_acknowledge() -> None:
    silent = look(WORKER, first=(None, None))
    assert not may_be_stuck(silent, {FIRST: Offsets(7, 7, 7)})
    assert not may_be_stuck(silent, {})
