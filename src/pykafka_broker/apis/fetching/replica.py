"""The sender of a Fetch: a consumer, or a replica with its id."""

from __future__ import annotations

from pykafka_broker.protocol.messages.fetch import FetchRequest

#: The broker id of a follower, and its broker epoch (-1 if unknown).
Follower = tuple[int, int]


def replica_id_of(request: FetchRequest) -> int:
    """The id of the fetching replica, negative for a consumer."""
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def follower_of(request: FetchRequest) -> Follower:
    """The fetching follower; its broker id is negative for a consumer."""
    state = request.replica_state
    return (request.replica_id, -1) if state is None else (state.replica_id, state.replica_epoch)
