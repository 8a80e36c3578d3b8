"""Exchanges that take several requests, written once for both shells.

A conversation is a generator: it yields `Ask` to have a request sent and `Wait` to wait, is sent a `Reply`
for each, and returns its result. It decides everything and does no I/O. If a shell cannot carry out a step
(no connection, no answer in time, no common version), the error is raised at the `yield`, and ends a
conversation that does not handle it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

Result = TypeVar("Result")


class Ask(NamedTuple):
    """Send this request to a broker."""

    request: object
    #: None: to any broker.
    node_id: int | None = None
    #: None: in the newest version that both sides know.
    version: int | None = None
    #: The newest version to use when none is named.
    at_most: int | None = None


class Wait(NamedTuple):
    """Resume at this time, or now if it is past."""

    until_ms: int


class Reply(NamedTuple):
    """The outcome of a step."""

    #: The response message; None after a `Wait`.
    response: Any
    #: The time of the outcome, by a monotonic clock.
    now_ms: int


#: The errors with which a shell answers a step that it could not carry out.
CANNOT = (OSError, KafkaError)


class AnotherMechanismError(KafkaError):
    """The broker does not offer the SASL mechanism that was tried first; the next connection uses another."""


Step = Ask | Wait
Conversation = Generator[Step, Reply, Result]


def drive(conversation: Conversation[Result], carry_out: Callable[[Step], Reply]) -> Result:
    """Run a conversation to its end; `carry_out` blocks until a step is done."""
    try:
        step = next(conversation)
        while True:
            try:
                reply = carry_out(step)
            except CANNOT as error:
                step = conversation.throw(error)
            else:
                step = conversation.send(reply)
    except StopIteration as end:
        result: Result = end.value
        return result
