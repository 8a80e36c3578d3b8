"""The common shape of all stateful parts: a pure transition returns a `Step`, a shell carries it out.

A core decides `(state, event) -> Step(state, records, effects)`. It does no I/O, reads no clock and makes no
random numbers: events carry `now_ms` and the random numbers that they need. `records` are durable facts,
appended before the new state is installed; `replay(state, record)` alone rebuilds the durable part of a
state. The shell carries out `effects` once the records are committed.

A token is a number that the shell maps to the waiting caller, so that states stay comparable with `==`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar, Union

from pykafka_broker.system.named_tuple import NamedTuple

State = TypeVar("State")


#: The time of a timer that is due already; other callbacks may run before it fires.
AT_ONCE_MS = 0


class Reply(NamedTuple):
    """Answer the caller with this `token`."""

    token: int
    result: object


class SetTimer(NamedTuple):
    """Deliver the timer event of `key` at `at_ms`, by the clock that events carry as `now_ms`; replaces a
    running timer of `key`.
    """

    key: Hashable
    at_ms: int


class CancelTimer(NamedTuple):
    """Forget the timer of `key`, if one runs."""

    key: Hashable


class Loaded(NamedTuple):
    """The shard has been rebuilt from its log and starts to serve."""

    now_ms: int


class TimerFired(NamedTuple):
    """A timer that the core has set is due."""

    key: Hashable
    now_ms: int


class Start(NamedTuple):
    """Let the owner of the core begin `work`; the outcome comes back as an event."""

    work: object


Effect = Union[Reply, SetTimer, CancelTimer, Start]


class Step(NamedTuple, Generic[State]):
    """The decision of a transition: the next state, records to append first, effects once they commit."""

    state: State
    records: tuple[object, ...] = ()
    effects: tuple[Effect, ...] = ()
