"""Finds the broker that coordinates a group or a transaction (FindCoordinator)."""

from __future__ import annotations

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.conversation import Ask, Conversation
from pykafka_broker.client.core.metadata import Brokers
from pykafka_broker.client.core.retries import RETRIABLE, Attempt, next_attempt
from pykafka_broker.protocol.errors import KafkaError, error_of
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

#: Key types.
GROUP, TRANSACTION = 0, 1


def find_coordinator(
    brokers: Brokers, key: str, attempt: Attempt, *, key_type: int = GROUP
) -> Conversation[int]:
    """The broker that coordinates a group, or the transactions of a transactional id.

    Raises:
        KafkaError: the cluster has no coordinator for it.
    """
    # Up to version 3 `key` is encoded, from version 4 on `coordinator_keys`.
    request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
    while True:
        response: FindCoordinatorResponse = (yield Ask(request)).response
        found: Coordinator | FindCoordinatorResponse = (
            response.coordinators[0] if response.coordinators else response
        )
        if not found.error_code:
            brokers.add(found.node_id, Address(found.host, found.port))
            return found.node_id
        if attempt.is_last or found.error_code not in RETRIABLE:
            raise KafkaError(error_of(found.error_code), found.error_message)
        attempt = yield from next_attempt(attempt)
