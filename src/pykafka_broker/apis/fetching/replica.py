"""Who fetches: a consumer, or a replica, which names itself."""

from __future__ import annotations

from pykafka_broker.protocol.messages.fetch import FetchRequest

#: The broker id of a follower, and the registration in which it fetches (-1 if it does not tell).
Follower = tuple[int, int]


def replica_id_of(request: FetchRequest) -> int:
    """The id of the fetching replica, negative for a consumer."""
    return request.replica_id if request.replica_state is None else request.replica_state.replica_id


def follower_of(request: FetchRequest) -> Follower:
    """The follower that asks; its broker id is negative if it is none."""
    state = request.replica_state
    return (request.replica_id, -1) if state is None else (state.replica_id, state.replica_epoch)
