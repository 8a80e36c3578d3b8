"""How a mechanism says no."""

from __future__ import annotations


class RefusedError(Exception):
    """The peer is not who it says, or does not speak its mechanism.

    `told` is what the peer may read. Without it the peer reads a sentence that is the same for every reason,
    so that it does not learn which users there are. The text of the exception is for this node's log; it has
    no secret and nothing that the peer sent.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class UnreadableTokenError(Exception):
    """A token over which Apache Kafka closes the connection without an answer."""


def refused_in_public(reason: str) -> RefusedError:
    """A refusal whose reason the peer may read."""
    return RefusedError(reason, told=reason)
