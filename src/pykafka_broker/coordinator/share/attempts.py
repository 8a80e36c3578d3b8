"""How often a question to a share coordinator is asked, and the refusal if all attempts fail. Pure.

As in Apache Kafka's `PersisterStateManager`: transient errors are retried after pauses that grow from 2 to 16
seconds, until five in a row; lookups of the coordinator and requests to it are counted apart. The refusal has
the last error, and a message that says what failed.
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.events import Refusal
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

MAX_ATTEMPTS = 5
PAUSES = Backoff(first_ms=2_000, greatest_ms=30_000)

#: The errors after which the coordinator is looked for again.
PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class Attempts(NamedTuple):
    """Failed attempts: `lookups` since the coordinator was last found, `requests` to it."""

    lookups: int = 0
    requests: int = 0


class Again(NamedTuple):
    """Look for the coordinator again after a pause."""

    attempts: Attempts
    pause_ms: int


def after_lookup(attempts: Attempts) -> Again | Refusal:
    """No broker is the coordinator, or it is not alive: try again, or give up."""
    lookups = attempts.lookups + 1
    if lookups < MAX_ATTEMPTS:
        return Again(attempts._replace(lookups=lookups), PAUSES.pause_ms(lookups - 1))
    return Refusal(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "Error in find coordinator. Exhausted max retries to find coordinator without success.",
    )


def after_refusal(attempts: Attempts, deed: str, refusal: Refusal) -> Again | Refusal:
    """The coordinator has refused, or not answered: try again, or tell the caller."""
    where = f"Error in {deed} RPC."
    if refusal.error not in PASSING:
        return Refusal(refusal.error, f"{where} {refusal.message}")
    requests = attempts.requests + 1
    if requests < MAX_ATTEMPTS:
        return Again(Attempts(0, requests), PAUSES.pause_ms(requests - 1))
    why = f"Exhausted max retries to complete {deed} RPC without success."
    return Refusal(refusal.error, f"{where} {why}")
