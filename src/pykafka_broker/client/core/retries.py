"""The errors that are temporary, and the times of attempts.

An `Attempt` is a value: the caller reads its own clock and passes the time. Attempts begin
`RETRY_PAUSE_MS` apart; an attempt that begins too late for another one is the last, so every time-out allows
at least one.
"""

from __future__ import annotations

from pykafka_broker.client.core.conversation import Conversation, Wait
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

#: The pause before a request is sent again while the cluster elects, creates or loads something.
RETRY_PAUSE_MS = 100

#: The errors that are temporary.
RETRIABLE = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class Attempt(NamedTuple):
    """One of the attempts that fit before a deadline; times are those of a monotonic clock."""

    began_ms: int
    deadline_ms: int

    @property
    def is_last(self) -> bool:
        """Whether no other attempt may follow."""
        return self.began_ms >= self.deadline_ms - RETRY_PAUSE_MS

    @property
    def next_ms(self) -> int:
        """When the next attempt may begin."""
        return self.began_ms + RETRY_PAUSE_MS

    def again(self, now_ms: int) -> Attempt:
        """The attempt that begins now."""
        return self._replace(began_ms=now_ms)


def first_attempt(now_ms: int, timeout_ms: int) -> Attempt:
    """The first of the attempts that fit into the time-out."""
    return Attempt(now_ms, now_ms + timeout_ms)


def next_attempt(attempt: Attempt) -> Conversation[Attempt]:
    """Wait until it is time to try again."""
    reply = yield Wait(attempt.next_ms)
    return attempt.again(reply.now_ms)
