"""The transitions of a leadership: its beginning, and the next state after each event.

    leadership_of(...) -> Leadership                from the metadata
    transition(leadership, event) -> Step           from followers, time and the controller

After each the shell moves the high watermark to the offset that `high_watermark` returns. The only effect is
`Start(IsrProposal(...))`: ask the controller for another ISR. Nothing here is durable: the ISR is in the
metadata log, and every new leader learns the followers' positions from their fetches.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.events import (
    BrokersChanged,
    Event,
    FollowerFetched,
    IsrChangeAnswered,
    IsrProposal,
    TimePassed,
)
from pykafka_broker.replication.core.in_sync import isr_with, isr_without_laggards
from pykafka_broker.replication.core.state import NO_BROKER_EPOCH, FollowerProgress, Isr, Leadership
from pykafka_broker.system.named_tuple import NamedTuple

#: The controller has certainly not made the change.
NOT_MADE = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
#: The leader's state of the partition is out of date; newer metadata will follow.
TOLD_BY_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class ReplicationSettings(NamedTuple):
    """The configuration of a partition's replication."""

    min_insync_replicas: int = 1
    lag_time_max_ms: int = 30_000


def is_outdated(leadership: Leadership, registration: PartitionRegistration) -> bool:
    """Whether `registration` is older than the controller's last answer about the ISR."""
    return registration.partition_epoch < leadership.partition_epoch


def leadership_of(
    before: Leadership | None,
    node_id: int,
    registration: PartitionRegistration,
    settings: ReplicationSettings,
    log_end_offset: int,
    now_ms: int,
) -> Leadership:
    """The leadership that `registration` gives this node; `before` is the present leadership, if the node
    leads already.

    In a new epoch the positions of followers are unknown until they fetch; in-sync followers have
    `replica.lag.time.max.ms` to do so. `registration` must not be outdated (`is_outdated`).
    """
    known: Mapping[int, FollowerProgress] = {}
    epoch_start_offset = log_end_offset
    isr = Isr(registration.isr)
    if before is not None and before.leader_epoch == registration.leader_epoch:
        known = before.followers
        epoch_start_offset = before.epoch_start_offset
        if before.partition_epoch == registration.partition_epoch:
            isr = before.isr
    return Leadership(
        node_id,
        registration.leader_epoch,
        epoch_start_offset,
        registration.partition_epoch,
        isr,
        {
            replica_id: known.get(replica_id)
            or FollowerProgress(caught_up_ms=now_ms if replica_id in registration.isr else None)
            for replica_id in registration.replicas
            if replica_id != node_id
        },
        settings.min_insync_replicas,
        settings.lag_time_max_ms,
    )


def transition(leadership: Leadership, event: Event) -> Step[Leadership]:
    """Return the leadership after `event`, with the ISR change to ask the controller for, if any."""
    if isinstance(event, FollowerFetched):
        if event.is_stale:
            return Step(leadership)
        leadership = _with_progress(leadership, event)
        return _asking_for(leadership, isr_with(leadership, event))
    if isinstance(event, TimePassed):
        return _asking_for(leadership, isr_without_laggards(leadership, event))
    if isinstance(event, BrokersChanged):
        return Step(_with_eligible(leadership, event.active))
    assert isinstance(event, IsrChangeAnswered)
    return _answered(leadership, event)


def _with_progress(leadership: Leadership, event: FollowerFetched) -> Leadership:
    """Kafka's rule for the caught-up time: a fetch from the leader's log end is caught up now; a fetch from
    the leader's log end at the follower's previous fetch was caught up at that time.
    """
    before = leadership.followers[event.replica_id]
    caught_up_ms = before.caught_up_ms
    if event.fetch_offset >= event.log.log_end_offset:
        caught_up_ms = event.now_ms
    elif before.fetched_ms is not None and event.fetch_offset >= before.leader_end_offset:
        caught_up_ms = max(before.caught_up_ms or before.fetched_ms, before.fetched_ms)
    follower = FollowerProgress(
        event.fetch_offset,
        max(event.log.log_end_offset, before.leader_end_offset),
        event.now_ms,
        caught_up_ms,
        event.broker_epoch,
        _is_eligible(event.broker_epoch, event.registered_epoch if event.is_active else None),
        event.log_start_offset,
    )
    return leadership._replace(followers={**leadership.followers, event.replica_id: follower})


def _is_eligible(broker_epoch: int, active_epoch: int | None) -> bool:
    """Whether a follower that fetched in `broker_epoch` may join the ISR; `active_epoch` is that of its
    registration, None while the broker is fenced or shutting down.
    """
    return active_epoch is not None and broker_epoch in (NO_BROKER_EPOCH, active_epoch)


def _with_eligible(leadership: Leadership, active: Mapping[int, int]) -> Leadership:
    followers = {
        replica_id: follower._replace(
            is_eligible=follower.fetched_ms is not None
            and _is_eligible(follower.broker_epoch, active.get(replica_id))
        )
        for replica_id, follower in leadership.followers.items()
    }
    return leadership if followers == leadership.followers else leadership._replace(followers=followers)


def _answered(leadership: Leadership, event: IsrChangeAnswered) -> Step[Leadership]:
    """The change was made, was certainly not made, or may have been made.

    In the third case the leader waits for the metadata. Until then every replica of the proposed ISR counts,
    and the leader proposes no other. After an error that is not about the partition it asks again.
    """
    change = event.change
    asked = (leadership.leader_epoch, leadership.partition_epoch, leadership.isr.proposed)
    if asked != (change.leader_epoch, change.partition_epoch, tuple(one for one, _ in change.new_isr)):
        return Step(leadership)  # the metadata has changed meanwhile
    if event.error in NOT_MADE:
        return Step(leadership._replace(isr=Isr(leadership.isr.committed)))
    if event.error in TOLD_BY_METADATA:
        return Step(leadership)
    partition = event.partition
    if event.error is not ErrorCode.NONE or partition is None:
        return Step(leadership, effects=(Start(change),))
    if (
        partition.leader_epoch != leadership.leader_epoch
        or partition.partition_epoch < leadership.partition_epoch
    ):
        return Step(leadership)
    return Step(leadership._replace(partition_epoch=partition.partition_epoch, isr=Isr(partition.isr)))


def _asking_for(leadership: Leadership, isr: tuple[int, ...] | None) -> Step[Leadership]:
    if isr is None:
        return Step(leadership)
    change = IsrProposal(
        leadership.leader_epoch,
        leadership.partition_epoch,
        tuple((replica_id, _broker_epoch(leadership, replica_id)) for replica_id in isr),
    )
    asked = leadership._replace(isr=leadership.isr._replace(proposed=isr))
    return Step(asked, effects=(Start(change),))


def _broker_epoch(leadership: Leadership, replica_id: int) -> int:
    """The broker epoch of a follower; the node fills in its own when it asks the controller."""
    follower = leadership.followers.get(replica_id)
    return NO_BROKER_EPOCH if follower is None else follower.broker_epoch
