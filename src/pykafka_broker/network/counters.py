"""The counters of all connections of a broker, for metrics."""

from __future__ import annotations


class Counters:
    """Counts since the broker started."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections_closed_for_errors",
        "connections_closed_idle",
        "connections_opened",
        "connections_rejected",
        "handler_failures",
        "requests",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.handler_failures = 0
        self.connections_opened = 0
        self.connections_rejected = 0
        self.connections_closed_idle = 0
        self.connections_closed_for_errors = 0
