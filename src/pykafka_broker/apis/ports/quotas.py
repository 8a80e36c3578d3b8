"""How much a client may ask for, and how long it has to wait after too much (KIP-13, KIP-124, KIP-599).

`Unlimited` is the only implementation so far.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Requester


class Quota(Enum):
    """Which quota a request counts to. But for EXEMPT, each counts to REQUEST too."""

    #: Bytes written.
    PRODUCE = "producer_byte_rate"
    #: Bytes read.
    FETCH = "consumer_byte_rate"
    #: Processing time.
    REQUEST = "request_percentage"
    #: Partitions created or deleted.
    CONTROLLER_MUTATION = "controller_mutation_rate"
    #: Requests between brokers.
    EXEMPT = "exempt"


class Quotas(Protocol):
    """Keeps account of each client's use."""

    def throttle_ms(self, quota: Quota, requester: Requester) -> int:
        """How long the client of a request that starts now has to wait before its next one."""
        ...


class Unlimited:
    """The quotas of a broker without limits."""

    def throttle_ms(self, quota: Quota, requester: Requester) -> int:
        """0."""
        return 0


UNLIMITED = Unlimited()
