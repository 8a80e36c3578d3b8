"""The shared state of the fetches of all connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.sessions import FetchSessionCache


class AwaitedFollowers(Protocol):
    """The followers that have yet to find a new leader here."""

    def moves(self, replica_id: int) -> Any:
        """What a parked fetch of this follower watches beside its logs: it moves when it is awaited."""
        ...

    def wait_ms(self, replica_id: int, max_wait_ms: int) -> int:
        """The time that a fetch of this follower may wait, which allows `max_wait_ms`."""
        ...


class Fetching:
    """Fetch sessions, and the configuration that fetches go by."""

    __slots__ = ("awaited", "max_bytes", "quiet_ms", "selects_by_rack", "sessions")

    def __init__(
        self,
        sessions: FetchSessionCache,
        awaited: AwaitedFollowers,
        max_bytes: int,
        *,
        quiet_ms: int = 0,
        selects_by_rack: bool = False,
    ) -> None:
        self.sessions = sessions
        self.awaited = awaited
        #: `fetch.max.bytes`: the most one Fetch answer carries, whatever the client allows.
        self.max_bytes = max_bytes
        #: So long the partitions of a follower do not hear of its fetches while nothing else happens.
        self.quiet_ms = quiet_ms
        #: Consumers are sent to a replica in their rack (`replica.selector.class`).
        self.selects_by_rack = selects_by_rack
