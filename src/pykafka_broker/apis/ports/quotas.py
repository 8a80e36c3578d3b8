"""The quotas of clients, and the throttle time of a client over its quota (KIP-13, KIP-124, KIP-599).

Quotas are set for users, for client ids, or for pairs of both: an implementation finds the quota by the
`principal` and the `client_id` of the `Requester`.

Three callers record the use of a request, before its answer is sent:

* `admission.py`: the bytes of a Produce request, and the time the broker spent on any request.
* `fetching/answer.py`, through `ctx.node.quotas`: the bytes of the answer to a consumer's Fetch. A consumer
  over its quota gets an empty answer instead, which does not count.
* `controller_mutations.py`, before each topic, for the handlers of CreateTopics,
  CreatePartitions and DeleteTopics: the partitions to create or delete. Newer versions refuse a topic with
  THROTTLING_QUOTA_EXCEEDED while the client is over its quota. The handler puts the throttle time into its
  answer.

`admission.py` puts the longest of these throttle times into `throttle_time_ms` of the answer and mutes the
connection for that time (KIP-219): the answer is sent at once, the next request starts later.

`quotas/client_quotas.py` is the implementation. Under `Unlimited`, `admission.py` returns the handler itself.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Requester


class Quota(Enum):
    """The quota that a request counts to. All requests but EXEMPT ones count to REQUEST too."""

    #: Bytes of requests that write.
    PRODUCE = "producer_byte_rate"
    #: Bytes of answers to consumers.
    FETCH = "consumer_byte_rate"
    #: Processing time in nanoseconds; the time that a request is parked does not count.
    REQUEST = "request_percentage"
    #: Partitions created or deleted.
    CONTROLLER_MUTATION = "controller_mutation_rate"
    #: Requests between brokers.
    EXEMPT = "exempt"


class Quotas(Protocol):
    """Counts the use of each user and client id. Event loop only."""

    @property
    def is_active(self) -> bool:
        """Whether there is any quota: else nothing needs to be recorded."""
        ...

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        """Count `amount`, in the unit of `quota`; 0 only asks, and a negative amount undoes a count.

        Returns the milliseconds that the requester's next request has to wait; 0 within the quota.
        """
        ...

    def most_bytes_fetched(self, requester: Requester) -> float:
        """The most bytes that the quota ever allows a consumer in one fetch, after a pause."""
        ...

    def processing_ns(self) -> int:
        """The clock for processing times: nanoseconds since an arbitrary moment."""
        ...


class Unlimited:
    """The quotas of a broker without limits."""

    is_active = False

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        """0."""
        return 0

    def most_bytes_fetched(self, requester: Requester) -> float:
        """Any number."""
        return inf

    def processing_ns(self) -> int:
        """0: no time is measured."""
        return 0


UNLIMITED = Unlimited()
