"""Who fetches: a consumer, or a replica, which names itself."""

from __future__ import annotations

from pykafka_broker.protocol.messages.fetch import FetchRequest


def replica_id_of(request: FetchRequest) -> int:
    """The id of the fetching replica, negative for a consumer."""
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id
