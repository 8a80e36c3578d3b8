"""The events of a partition that is led here, and the request of its leader to the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from pykafka_broker.controller.core.events import InSyncReplicas
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.state import NO_BROKER_EPOCH, UNKNOWN_OFFSET, LogOffsets
from pykafka_broker.system.named_tuple import NamedTuple


class FollowerFetched(NamedTuple):
    """An assigned follower asks for records from `fetch_offset` on, so it has everything below.

    A fetch that is answered with an error or a diverging epoch tells nothing of the kind and is no event.
    """

    now_ms: int
    replica_id: int
    fetch_offset: int
    log: LogOffsets
    #: The registration in which the follower fetches, -1 in requests that do not tell.
    broker_epoch: int = NO_BROKER_EPOCH
    #: From the newest image: the epoch of that broker's registration, and whether it is neither fenced nor
    #: shutting down.
    registered_epoch: int = NO_BROKER_EPOCH
    is_active: bool = True
    #: Where the follower's log starts.
    log_start_offset: int = UNKNOWN_OFFSET

    @property
    def is_stale(self) -> bool:
        """The broker has registered again since: the records it had fetched may be lost by now (KIP-903)."""
        return self.broker_epoch != NO_BROKER_EPOCH and self.broker_epoch < self.registered_epoch


class TimePassed(NamedTuple):
    """Half of `replica.lag.time.max.ms` has passed: followers may lag by now."""

    now_ms: int
    log: LogOffsets


class BrokersChanged(NamedTuple):
    """New metadata of the brokers: the epoch in which each follower that is active is registered."""

    active: Mapping[int, int]


class AlterPartition(NamedTuple):
    """Ask the controller for this ISR; the epochs say which state of the partition the leader knows."""

    leader_epoch: int
    partition_epoch: int
    #: Broker ids and the epochs of their registrations, -1 where the leader knows none.
    new_isr: tuple[tuple[int, int], ...]


class IsrChangeAnswered(NamedTuple):
    """The controller's answer to `change`: the partition as it is now, or the error."""

    change: AlterPartition
    error: ErrorCode
    partition: InSyncReplicas | None = None


Event = Union[FollowerFetched, TimePassed, BrokersChanged, IsrChangeAnswered]
