"""The transitions of a leadership: its beginning, and the next state after each event.

    lead(...) -> Leadership                         from the metadata
    transition(leadership, event) -> Step           from followers, time and the controller

After each of them the shell moves the high watermark to the offset that `high_watermark` returns. The only
effect is `Start(AlterPartition(...))`: ask the controller for another ISR. Nothing here is durable: the ISR
is in the metadata log, and followers tell their positions again to every new leader.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.replication.core.events import (
    AlterPartition,
    Event,
    FollowerFetched,
    IsrChangeRefused,
    TimePassed,
)
from pykafka_broker.replication.core.in_sync import isr_with, isr_without_laggards
from pykafka_broker.replication.core.state import NO_BROKER_EPOCH, Follower, Isr, Leadership
from pykafka_broker.system.named_tuple import NamedTuple


class ReplicationSettings(NamedTuple):
    """The configuration keys that replication of a partition goes by."""

    min_insync_replicas: int = 1
    lag_time_max_ms: int = 30_000


def lead(
    before: Leadership | None,
    node_id: int,
    registration: PartitionRegistration,
    settings: ReplicationSettings,
    log_end_offset: int,
    now_ms: int,
) -> Leadership:
    """The leadership that `registration` gives this node; `before` is the one it had, if it led already.

    In a new epoch every follower has to tell its position again; those of the ISR have the lag time to do so.
    """
    known: Mapping[int, Follower] = {}
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
            or Follower(caught_up_ms=now_ms if replica_id in registration.isr else None)
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
    assert isinstance(event, IsrChangeRefused)
    if event.partition_epoch != leadership.partition_epoch:
        return Step(leadership)  # the metadata has gone on meanwhile
    return Step(leadership._replace(isr=Isr(leadership.isr.committed)))


def _with_progress(leadership: Leadership, event: FollowerFetched) -> Leadership:
    """Kafka's rule for the caught-up time: a fetch from the leader's end is caught up now; one from where the
    leader's log ended at the fetch before was caught up then.
    """
    before = leadership.followers[event.replica_id]
    caught_up_ms = before.caught_up_ms
    if event.fetch_offset >= event.log.log_end_offset:
        caught_up_ms = event.now_ms
    elif before.fetched_ms is not None and event.fetch_offset >= before.leader_end_offset:
        caught_up_ms = max(before.caught_up_ms or before.fetched_ms, before.fetched_ms)
    follower = Follower(
        log_end_offset=event.fetch_offset,
        leader_end_offset=max(event.log.log_end_offset, before.leader_end_offset),
        fetched_ms=event.now_ms,
        caught_up_ms=caught_up_ms,
        broker_epoch=event.broker_epoch,
        is_eligible=event.is_active,
    )
    return leadership._replace(followers={**leadership.followers, event.replica_id: follower})


def _asking_for(leadership: Leadership, isr: tuple[int, ...] | None) -> Step[Leadership]:
    if isr is None:
        return Step(leadership)
    change = AlterPartition(
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
