"""The limits of one connection.

The memory limits of all connections together are in `memory.py`, those of their number in `endpoint.py`.
"""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class ConnectionLimits(NamedTuple):
    """The limits of one connection."""

    #: socket.request.max.bytes
    request_max_bytes: int = 100 * 1024 * 1024
    #: connections.max.idle.ms; negative: never.
    idle_ms: int = 600_000
    #: Answers that may be outstanding (`Later`) before the next request has to wait.
    outstanding_answers: int = 100
    #: Bytes kept for requests that may not start yet, before the connection stops reading.
    read_ahead_bytes: int = 64 * 1024
    #: The most requests served in one turn of the event loop, before other connections have their turn.
    requests_per_round: int = 250
    #: A request must arrive within this time after its first byte, plus one second per 16 KiB of it.
    request_arrival_ms: int = 30_000
    #: Unsent bytes above which no further request starts.
    unsent_high_water_bytes: int = 64 * 1024
    #: A peer that has not read a byte of its answers for this long is disconnected.
    stalled_ms: int = 60_000
