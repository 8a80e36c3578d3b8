"""The one shape of every stateful part: a pure transition returns a `Step`, a shell carries it out.

A core decides `(state, event) -> Step(state, records, effects)`. It does no I/O, reads no clock and rolls no
dice: events carry `now_ms` and whatever randomness they need. `records` are durable facts, appended before
the new state is installed; `replay(state, record)` alone rebuilds the durable part of a state. `effects` are
carried out by the shell once the records are committed.

A token is a number that the shell maps to the caller that waits for the answer, so cores stay comparable
with `==`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar, Union

from pykafka_broker.system.named_tuple import NamedTuple

State = TypeVar("State")


#: The moment of a timer that is due already: others have their turn before it fires.
AT_ONCE_MS = 0


class Reply(NamedTuple):
    """Answer the caller that `token` stands for."""

    token: int
    result: object


class SetTimer(NamedTuple):
    """Deliver the shell's timer event for `key` at `at_ms` (wall clock); replaces a running timer of that
    key.
    """

    key: Hashable
    at_ms: int


class CancelTimer(NamedTuple):
    """Forget the timer of `key`, if one runs."""

    key: Hashable


class Start(NamedTuple):
    """Let the owner of the core begin `work`; its outcome comes back as an event."""

    work: object


Effect = Union[Reply, SetTimer, CancelTimer, Start]


class Step(NamedTuple, Generic[State]):
    """The decision of a transition: the next state, records to append first, effects once they commit."""

    state: State
    records: tuple[object, ...] = ()
    effects: tuple[Effect, ...] = ()
