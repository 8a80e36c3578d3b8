"""The follower's side of an incremental fetch session (KIP-227): what a request has to say.

A session begins with a full request. The leader remembers it, so that later requests name only partitions
that have changed, and those to forget. A leader that gives no session gets full requests for ever.

    wants(key, wanted) / forgets(key)   as partitions are added, move on, are held back or are left
    next_request() -> SessionRequest    costs as much as has changed
    answered(...) / failed()            the leader has answered, or has not

A request that was not answered is followed by a full one, which also ends the session that there was.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

Key = TypeVar("Key")

NO_SESSION_ID = 0
FULL_EPOCH = 0
MAX_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """What a fetch says about one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class SessionRequest(NamedTuple, Generic[Key]):
    """The part of a fetch that the session decides."""

    session_id: int
    session_epoch: int
    named: dict[Key, Wanted]
    forgotten: tuple[Key, ...] = ()


class FollowerSession(Generic[Key]):
    """The session of one fetcher with one leader."""

    __slots__ = ("_changed", "_epoch", "_forgotten", "_new", "_session_id", "wanted")

    def __init__(self) -> None:
        #: Everything that is asked for, in this request or by the session.
        self.wanted: dict[Key, Wanted] = {}
        #: Not told to the leader yet.
        self._changed: dict[Key, Wanted] = {}
        #: Those of which the leader does not know at all yet.
        self._new: set[Key] = set()
        #: The leader still has these.
        self._forgotten: dict[Key, None] = {}
        self._session_id = NO_SESSION_ID
        self._epoch = FULL_EPOCH

    def wants(self, key: Key, wanted: Wanted) -> None:
        """Ask for this from the next request on."""
        before = self.wanted.get(key)
        if before == wanted:
            return
        if before is None and key not in self._forgotten:
            self._new.add(key)
        self.wanted[key] = self._changed[key] = wanted
        self._forgotten.pop(key, None)

    def forgets(self, key: Key) -> None:
        """Do not ask for this partition any more."""
        if self.wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            if key in self._new:
                self._new.discard(key)
            else:
                self._forgotten[key] = None

    def next_request(self) -> SessionRequest[Key]:
        """What the next request says; `answered` or `failed` follows."""
        if self._epoch == FULL_EPOCH:
            request = SessionRequest(self._session_id, FULL_EPOCH, dict(self.wanted))
        else:
            request = SessionRequest(self._session_id, self._epoch, self._changed, tuple(self._forgotten))
        self._changed, self._forgotten, self._new = {}, {}, set()
        return request

    def answered(self, error: ErrorCode, session_id: int) -> bool:
        """The leader has answered the request; return whether the answer is of use."""
        if error is not ErrorCode.NONE:
            if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION_ID
            self._epoch = FULL_EPOCH
            return False
        if session_id == NO_SESSION_ID:
            self._session_id, self._epoch = NO_SESSION_ID, FULL_EPOCH
        elif self._epoch == FULL_EPOCH or session_id != self._session_id:
            self._session_id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return True

    def failed(self) -> None:
        """There is no answer: whether the leader has seen the request is not known."""
        self._epoch = FULL_EPOCH
