"""The users who have signed in to a console: in memory, forgotten with the process."""

from __future__ import annotations

from collections import OrderedDict

from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.machine.clock import Clock
from pykafka_broker.system.named_tuple import NamedTuple

#: The most sessions. Where one more begins, the one that was used longest ago ends.
MAX_SESSIONS = 100
#: A session ends after this time without a page.
IDLE_MS = 30 * 60 * 1000


class User(NamedTuple):
    """A user of the cluster, and the security of connections that act as this user."""

    name: str
    security: ClientSecurity

    def __repr__(self) -> str:
        """The name alone."""
        return f"User({self.name!r})"


class Sessions:
    """Users by the id in their cookie. Used on the event loop alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The one that was used longest ago is the first.
        self._used: OrderedDict[str, tuple[User, int]] = OrderedDict()

    def begin(self, session_id: str, user: User) -> None:
        """Remember who has signed in."""
        self._used[session_id] = (user, self._clock.monotonic_ms())
        while len(self._used) > MAX_SESSIONS:
            self._used.popitem(last=False)

    def user(self, session_id: str, *, is_use: bool = True) -> User | None:
        """Who has signed in; None if the session has ended. A look that is no use does not prolong it."""
        found = self._used.get(session_id)
        now_ms = self._clock.monotonic_ms()
        if found is None or now_ms - found[1] > IDLE_MS:
            self._used.pop(session_id, None)
            return None
        if is_use:
            self._used[session_id] = (found[0], now_ms)
            self._used.move_to_end(session_id)
        return found[0]

    def end(self, session_id: str) -> None:
        """Forget a session."""
        self._used.pop(session_id, None)
