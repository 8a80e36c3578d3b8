"""The quotas of clients, and the throttle time of a client that used more (KIP-13, KIP-124, KIP-599).

Quotas are set for users, for client ids, or for both together: an implementation finds its account by the
`principal` and the `client_id` of the `Requester`.

Two callers record the use of a request, each when it knows the amount:

* `admission.py`: before the handler runs, the record bytes of a Produce request; when the answer is there and
  not yet sent, the record bytes of a Fetch answer and the time the broker spent on the request.
* `controller_mutations.py`, through `ctx.node.quotas`, for the handlers of CreateTopics, CreatePartitions and
  DeleteTopics: the partitions to create or delete, before each topic. Newer versions refuse a topic with
  THROTTLING_QUOTA_EXCEEDED while the client is over its quota. The handler puts the throttle time into its
  answer.

`admission.py` puts the longest of these throttle times into `throttle_time_ms` of the answer and mutes the
connection for as long (KIP-219): the answer leaves at once, the next request starts later.

`Unlimited` is the only implementation so far. Under it `admission.py` returns the handler itself.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Requester


class Quota(Enum):
    """The quota that a request counts to. But for EXEMPT, each counts to REQUEST too."""

    #: Bytes of records written.
    PRODUCE = "producer_byte_rate"
    #: Bytes of records answered.
    FETCH = "consumer_byte_rate"
    #: Processing time in nanoseconds; the time that a request is parked does not count.
    REQUEST = "request_percentage"
    #: Partitions created or deleted.
    CONTROLLER_MUTATION = "controller_mutation_rate"
    #: Requests between brokers.
    EXEMPT = "exempt"


class Quotas(Protocol):
    """Keeps account of the use of each user and client id. Event loop only."""

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        """Count `amount`, in the unit of `quota`; 0 only asks.

        Returns the milliseconds that the requester's next request has to wait; 0 within the quota.
        """
        ...

    def processing_ns(self) -> int:
        """The clock that processing time is measured with: nanoseconds since some moment."""
        ...


class Unlimited:
    """The quotas of a broker without limits."""

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        """0."""
        return 0

    def processing_ns(self) -> int:
        """0: no time is measured."""
        return 0


UNLIMITED = Unlimited()
