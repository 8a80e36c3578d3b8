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

    A fetch that is answered with an error or a diverging epoch is not such an event.
    """

    now_ms: int
    replica_id: int
    fetch_offset: int
    log: LogOffsets
    #: The epoch of the follower's registration, -1 in requests that do not name it.
    broker_epoch: int = NO_BROKER_EPOCH
    #: From the newest image: the epoch of that broker's registration, and whether it is neither fenced nor
    #: shutting down.
    registered_epoch: int = NO_BROKER_EPOCH
    is_active: bool = True
    #: Where the follower's log starts.
    log_start_offset: int = UNKNOWN_OFFSET

    @property
    def is_stale(self) -> bool:
        """Whether the broker has registered again since, and so may have lost fetched records (KIP-903)."""
        return self.broker_epoch != NO_BROKER_EPOCH and self.broker_epoch < self.registered_epoch


class TimePassed(NamedTuple):
    """Half of `replica.lag.time.max.ms` has passed: look for followers that lag."""

    now_ms: int
    log: LogOffsets


class BrokersChanged(NamedTuple):
    """The brokers in the metadata have changed: the registration epochs of all active followers."""

    active: Mapping[int, int]


class IsrProposal(NamedTuple):
    """Ask the controller for this ISR; the epochs are those of the partition as the leader knows it."""

    leader_epoch: int
    partition_epoch: int
    #: Broker ids and the epochs of their registrations, -1 if unknown.
    new_isr: tuple[tuple[int, int], ...]


class IsrChangeAnswered(NamedTuple):
    """The controller's answer to `change`: the partition as it is now, or the error."""

    change: IsrProposal
    error: ErrorCode
    partition: InSyncReplicas | None = None


Event = Union[FollowerFetched, TimePassed, BrokersChanged, IsrChangeAnswered]
