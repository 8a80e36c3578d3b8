"""The state of consecutive records that are in flight, and every change of it.

    Available ──▶ Acquired ──┬─▶ Acknowledged
        ▲                    ├─▶ Archived
        └────────────────────┘

A change that has to be written to the share coordinator is a transition: the new state is set at once,
and `rollback` keeps the old one until the write is done. Records that left the log, or whose transaction
was aborted, are archived permanently, in transition or not.
"""

from __future__ import annotations

import enum
from typing import Optional

from pykafka_broker.system.named_tuple import NamedTuple

NO_MEMBER = ""
#: The lock of records that no member has acquired.
NO_LOCK = -1


class Delivery(enum.Enum):
    """Kafka's RecordState; the value is the number in requests to the share coordinator."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


TERMINAL = frozenset({Delivery.ACKNOWLEDGED, Delivery.ARCHIVED})


class Rollback(NamedTuple):
    """The state to restore if the write of a transition fails."""

    write_id: int
    member_id: str
    #: The delivery count limit when the transition began.
    delivery_count_limit: int


class InFlightState(NamedTuple):
    """The state that consecutive records have in common."""

    delivery: Delivery
    #: How often they have been delivered.
    delivery_count: int
    #: The member that has acquired them; empty if none has.
    member_id: str = NO_MEMBER
    #: When the member's lock times out; kept during a transition.
    lock_until_ms: int = NO_LOCK
    #: None unless a write is in flight.
    rollback: Optional[Rollback] = None
    #: Archived permanently: a failed write changes nothing.
    is_gone: bool = False

    @property
    def is_done(self) -> bool:
        """The records need no more delivery, or will need none once their write succeeds."""
        return self.delivery in TERMINAL

    @property
    def is_done_for_good(self) -> bool:
        """The records need no more delivery, and no write can change that."""
        return self.rollback is None and self.delivery in TERMINAL

    @property
    def can_be_acquired(self) -> bool:
        return self.rollback is None and self.delivery is Delivery.AVAILABLE


def acquired(state: InFlightState, member_id: str, lock_until_ms: int) -> InFlightState:
    """Delivered to a member once more."""
    return InFlightState(Delivery.ACQUIRED, state.delivery_count + 1, member_id, lock_until_ms)


def renewed(state: InFlightState, lock_until_ms: int) -> InFlightState:
    """The member's lock lasts longer."""
    return state._replace(lock_until_ms=lock_until_ms)


def given_back(state: InFlightState, delivery_count_limit: int, *, is_in_log: bool) -> Delivery:
    """The new state of lost records: archived at the delivery limit or out of the log, else available."""
    if is_in_log and state.delivery_count < delivery_count_limit:
        return Delivery.AVAILABLE
    return Delivery.ARCHIVED


def in_transition(
    state: InFlightState, delivery: Delivery, write_id: int, delivery_count_limit: int
) -> InFlightState:
    """On the way to `delivery`, until the write is done."""
    rollback = Rollback(write_id, state.member_id, delivery_count_limit)
    return InFlightState(delivery, state.delivery_count, NO_MEMBER, state.lock_until_ms, rollback)


def timed_out(state: InFlightState, delivery: Delivery) -> InFlightState:
    """The lock has timed out; this stands even if the write fails."""
    return InFlightState(delivery, state.delivery_count)


def committed(state: InFlightState) -> InFlightState:
    """The write was successful."""
    return state._replace(rollback=None, lock_until_ms=NO_LOCK)


def rolled_back(state: InFlightState, now_ms: int, *, is_in_log: bool) -> InFlightState:
    """The write has failed: acquired again, unless the lock has timed out meanwhile."""
    before = state.rollback
    if state.is_gone or before is None:
        return committed(state)
    if state.lock_until_ms <= now_ms:
        return timed_out(state, given_back(state, before.delivery_count_limit, is_in_log=is_in_log))
    return InFlightState(Delivery.ACQUIRED, state.delivery_count, before.member_id, state.lock_until_ms)


def archived(state: InFlightState) -> InFlightState:
    """Archived permanently, without a write."""
    return InFlightState(Delivery.ARCHIVED, state.delivery_count, rollback=state.rollback, is_gone=True)
