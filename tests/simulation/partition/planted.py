"""Known mistakes of leaders and followers of replicated partitions, and of the controller that they ask for
another ISR: each is a change of `replication/core`, or of `controller/core/alter_partition.py`.

The simulation has to find each of them: that it finds nothing in the core as it is means no more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.controller.core import alter_partition
from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core import access, following, high_watermark, in_sync, transitions
from pykafka_broker.replication.core.events import Event, FollowerFetched
from pykafka_broker.replication.core.following import FollowerLog, Following, TruncateTo
from pykafka_broker.replication.core.state import NO_BROKER_EPOCH, UNKNOWN_OFFSET, Isr, Leadership
from tests.simulation.wrong import Wrong


class Planted(NamedTuple):
    """A mistake, found in one of the first `seeds` seeds."""

    bug: str
    wrongs: tuple[Wrong, ...]
    seeds: int = 300


def _joins(has_enough: Callable[[Leadership, FollowerFetched, int], bool]) -> Callable[[Any], object]:
    def isr_with(leadership: Leadership, event: FollowerFetched) -> tuple[int, ...] | None:
        follower = leadership.followers[event.replica_id]
        isr = leadership.isr
        if isr.proposed is not None or event.replica_id in isr.committed or not follower.is_eligible:
            return None
        if not has_enough(leadership, event, follower.log_end_offset):
            return None
        return (*isr.committed, event.replica_id)

    return lambda right: isr_with


def _isr_as(counting: Callable[[Isr], frozenset[int]]) -> Callable[[Any], object]:
    return lambda right: property(counting)


def _goes_back(right: Any) -> object:
    def wrong(leadership: Leadership, log: Any, local_offset: int, now_ms: int) -> int:
        offsets = [local_offset]
        for replica_id, follower in leadership.followers.items():
            if replica_id in leadership.isr.maximal and follower.log_end_offset != UNKNOWN_OFFSET:
                offsets.append(follower.log_end_offset)
        return min(offsets)

    return wrong


def _unknown_followers_do_not_count(right: Any) -> object:
    def wrong(leadership: Leadership, log: Any, local_offset: int, now_ms: int) -> int:
        known = {n: f for n, f in leadership.followers.items() if f.log_end_offset != UNKNOWN_OFFSET}
        offset: int = right(leadership._replace(followers=known), log, local_offset, now_ms)
        return offset

    return wrong


def _without_broker_epoch(right: Any) -> object:
    def wrong(leadership: Leadership, event: Event) -> Step[Leadership]:
        if isinstance(event, FollowerFetched):
            event = event._replace(broker_epoch=NO_BROKER_EPOCH)
        step: Step[Leadership] = right(leadership, event)
        return step

    return wrong


def _truncates_first(right: Any) -> object:
    def wrong(leader_epoch: int, log: FollowerLog, damaged_from: int | None = None) -> Step[Following]:
        step: Step[Following] = right(leader_epoch, log, damaged_from)
        return Step(step.state, effects=(Start(TruncateTo(log.high_watermark)),))

    return wrong


def _takes_changes_from(*, any_leader: bool) -> Callable[[Any], object]:
    """Whatever state of the partition a leader knows counts as the newest, and with `any_leader` whoever asks
    counts as the leader.
    """

    def planted(right: Any) -> object:
        def wrong(state: Any, broker_id: int, partition: PartitionRegistration, change: Any) -> ErrorCode:
            asked = change._replace(
                leader_epoch=partition.leader_epoch, partition_epoch=partition.partition_epoch
            )
            error: ErrorCode = right(state, partition.leader if any_leader else broker_id, partition, asked)
            return error

        return wrong

    return planted


PLANTED = (
    Planted(
        "a follower joins before it has reached the high watermark",
        (Wrong(transitions, "isr_with", _joins(lambda led, event, end: end >= led.epoch_start_offset - 2)),),
    ),
    Planted(
        "the start of the epoch is ignored when a follower joins",
        (Wrong(transitions, "isr_with", _joins(lambda led, event, end: end >= event.log.high_watermark)),),
    ),
    Planted(
        "a follower that the controller has been asked for does not count yet",
        (
            Wrong(Isr, "maximal", _isr_as(lambda isr: frozenset(isr.committed))),
            Wrong(high_watermark, "is_about_to_join", lambda right: lambda *_: False),
        ),
    ),
    Planted(
        "a follower that is to leave does not count any more",
        (Wrong(Isr, "maximal", _isr_as(lambda isr: frozenset(isr.proposed or isr.committed))),),
    ),
    Planted("the high watermark goes back", (Wrong(high_watermark, "high_watermark", _goes_back),)),
    Planted(
        "followers that have not told their position do not count",
        (Wrong(high_watermark, "high_watermark", _unknown_followers_do_not_count),),
    ),
    Planted(
        "the epoch of a broker is ignored",
        (Wrong(transitions, "transition", _without_broker_epoch),),
    ),
    Planted(
        "after an answer that leaves it open the old ISR counts",
        (
            Wrong(transitions, "NOT_MADE", lambda right: right | {ErrorCode.INVALID_UPDATE_VERSION}),
            Wrong(high_watermark, "is_about_to_join", lambda right: lambda *_: False),
        ),
    ),
    Planted(
        "the high watermark moves although too few replicas are in sync",
        (
            Wrong(high_watermark, "is_under_min_isr", lambda right: lambda _: False),
            Wrong(in_sync, "is_under_min_isr", lambda right: lambda _: False),
        ),
    ),
    Planted(
        "consumers are told the end by a leader that does not know it",
        (Wrong(access, "is_end_known", lambda right: lambda *_: True),),
    ),
    Planted(
        "followers are not told where the logs diverge",
        (
            Wrong(
                LeaderEpochs, "end_offset_for", lambda right: lambda log, epoch, end: EpochEntry(epoch, end)
            ),
        ),
    ),
    Planted(
        "a follower truncates to its high watermark when the leader changes",
        (Wrong(following, "follow", _truncates_first),),
    ),
    Planted(
        "the controller does not fence the leaders of earlier epochs",
        (Wrong(alter_partition, "refusal", _takes_changes_from(any_leader=True)),),
    ),
    Planted(
        "the controller takes the change of a leader that does not know the one before",
        (Wrong(alter_partition, "refusal", _takes_changes_from(any_leader=False)),),
    ),
    Planted(
        "the controller lets in fenced replicas, and those that have started again",
        (Wrong(alter_partition, "may_be_in_sync", lambda right: lambda *_: True),),
    ),
    Planted(
        "a leader does not fence followers of other epochs",
        (Wrong(access, "check_leader_epoch", lambda right: lambda *_: None),),
    ),
)
