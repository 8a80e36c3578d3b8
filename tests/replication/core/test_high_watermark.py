"""Up to where is a partition committed?"""

from __future__ import annotations

from pykafka_broker.replication.core.events import BrokersChanged
from pykafka_broker.replication.core.high_watermark import commits_at_once, high_watermark
from pykafka_broker.replication.core.state import Leadership, LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, leadership_of, transition
from tests.replication.leading import LAG_MS, LEADER, NOW_MS, after, fetched, leading, registration


def committed(
    leadership: Leadership, *, before: int = 100, end: int, on_disk: int | None = None, now_ms: int = NOW_MS
) -> int:
    return high_watermark(leadership, LogOffsets(before, end), end if on_disk is None else on_disk, now_ms)


def test_a_leader_without_followers_commits_what_it_has() -> None:
    alone = leading(1, replicas=(1,))
    assert commits_at_once(alone)
    assert committed(alone, end=120) == 120


def test_a_leader_without_followers_asks_for_no_more_replicas_than_there_are() -> None:
    assert commits_at_once(leading(1, replicas=(1,), min_insync_replicas=2))


def test_where_syncs_are_asked_for_only_what_is_on_disk_is_committed() -> None:
    assert committed(leading(1, replicas=(1,)), end=120, on_disk=110) == 110


def test_a_new_leader_commits_nothing_before_it_knows_how_far_its_followers_are() -> None:
    new = leading(1, 2, 3)
    assert not commits_at_once(new)
    assert committed(new, before=90, end=100) == 90
    assert committed(after(new, fetched(2, 100)), before=90, end=100) == 90


def test_the_slowest_replica_in_sync_decides() -> None:
    followed = after(leading(1, 2, 3), fetched(2, 120, end=130), fetched(3, 110, end=130))
    assert committed(followed, end=130) == 110


def test_a_leader_that_is_behind_on_its_own_disk_is_the_slowest() -> None:
    followed = after(leading(1, 2), fetched(2, 130, end=130))
    assert committed(followed, end=130, on_disk=105) == 105


def test_a_replica_out_of_sync_keeps_nothing_from_being_committed() -> None:
    followed = after(leading(1, 2), fetched(2, 130, end=130), fetched(3, 10, end=130))
    assert committed(followed, end=130) == 130


def test_a_replica_that_is_about_to_join_is_waited_for_as_long_as_it_keeps_up() -> None:
    keeping_up = after(leading(1, 2), fetched(3, 100, end=100), fetched(2, 130, end=130))
    assert committed(keeping_up, end=130) == 100
    assert committed(keeping_up, end=130, now_ms=NOW_MS + LAG_MS + 1) == 100, "the ISR with it is asked for"

    fenced = after(leading(1, 2), fetched(3, 100)._replace(is_active=False), fetched(2, 130, end=130))
    assert committed(fenced, end=130) == 130


def test_a_leader_with_a_follower_that_may_join_does_not_commit_at_once() -> None:
    assert commits_at_once(leading(1))
    assert not commits_at_once(after(leading(1), fetched(2, 50)))


def test_nothing_is_committed_while_too_few_are_in_sync() -> None:
    short = leading(1, min_insync_replicas=2)
    assert not commits_at_once(short)
    assert committed(short, end=130) == 100


def test_the_high_watermark_of_an_earlier_leader_does_not_go_back() -> None:
    behind = after(leading(1, 2), fetched(2, 80, high_watermark=100))
    assert committed(behind, end=100) == 100


def test_in_a_new_epoch_followers_have_to_tell_their_positions_again() -> None:
    followed = after(leading(1, 2), fetched(2, 130, end=130))
    next_epoch = registration(1, 2, leader_epoch=6, partition_epoch=8)
    again = leadership_of(followed, LEADER, next_epoch, ReplicationSettings(), 130, NOW_MS)
    assert again.epoch_start_offset == 130
    assert committed(again, end=140) == 100


def test_a_follower_that_left_with_its_broker_is_not_waited_for() -> None:
    """Else a follower that died would hold up producers for the whole lag time after it left the ISR."""
    followed = after(leading(1, 2), fetched(2, 100, end=100))
    left = leadership_of(
        followed, LEADER, registration(1, partition_epoch=8), ReplicationSettings(1, LAG_MS), 130, NOW_MS
    )
    assert committed(left, end=130) == 100
    assert committed(transition(left, BrokersChanged({})).state, end=130) == 130
