"""The errors with which a mechanism refuses a peer."""

from __future__ import annotations


class RefusedError(Exception):
    """The peer's credentials are wrong, or it does not follow its mechanism.

    `told` is the message to the peer. Without it the peer gets a sentence that is the same for every reason,
    so that it does not learn which users exist. The text of the exception is for this node's log; it has no
    secret and nothing that the peer sent.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


class UnreadableTokenError(Exception):
    """A token at which Apache Kafka closes the connection without an answer."""


def refused_in_public(reason: str) -> RefusedError:
    """A refusal whose reason the peer may read."""
    return RefusedError(reason, told=reason)


def other_authorization_id() -> RefusedError:
    """The refusal of a peer that wants to act for a user that it is not."""
    return refused_in_public(
        "Authentication failed: Client requested an authorization id that is different from username"
    )
