"""The shared state of the fetches of all connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_broker.apis.fetch_sessions import FetchSessionCache


class Fetching:
    """Fetch sessions, and a limit that the broker's configuration may change."""

    __slots__ = ("max_bytes", "sessions")

    def __init__(self, sessions: FetchSessionCache, max_bytes: int) -> None:
        self.sessions = sessions
        #: `fetch.max.bytes`: the most one Fetch answer carries, whatever the client allows.
        self.max_bytes = max_bytes
