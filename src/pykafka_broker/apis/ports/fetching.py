"""The shared state of the fetches of all connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_broker.apis.fetch_sessions import FetchSessionCache


class Fetching:
    """Fetch sessions, and the configuration that fetches go by."""

    __slots__ = ("max_bytes", "selects_by_rack", "sessions")

    def __init__(self, sessions: FetchSessionCache, max_bytes: int, *, selects_by_rack: bool = False) -> None:
        self.sessions = sessions
        #: `fetch.max.bytes`: the most one Fetch answer carries, whatever the client allows.
        self.max_bytes = max_bytes
        #: Consumers are sent to a replica in their rack (`replica.selector.class`).
        self.selects_by_rack = selects_by_rack
