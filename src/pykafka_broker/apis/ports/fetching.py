"""The shared state of the fetches of all connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.sessions import FetchSessionCache


class AwaitedFollowers(Protocol):
    """The followers that have not fetched yet from a new leader here."""

    def moves(self, replica_id: int) -> Any:
        """What a parked fetch of this follower watches besides its logs; moves if the follower becomes
        awaited.
        """
        ...

    def wait_ms(self, replica_id: int, max_wait_ms: int) -> int:
        """How long a fetch of this follower may wait, at most its `max_wait_ms`."""
        ...


class Fetching:
    """Fetch sessions, and the configuration of fetches."""

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
        #: `fetch.max.bytes`: the most bytes of one Fetch answer.
        self.max_bytes = max_bytes
        #: The longest time that a settled partition does not notice the fetches of its follower.
        self.quiet_ms = quiet_ms
        #: Whether consumers are redirected to a replica in their rack (`replica.selector.class`).
        self.selects_by_rack = selects_by_rack
