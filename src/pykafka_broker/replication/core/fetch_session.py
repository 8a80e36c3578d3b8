"""The follower's side of an incremental fetch session (KIP-227): the content of each request.

A session begins with a full request. The leader remembers it, so that later requests name only changed
partitions and those to forget. A leader that gives no session always gets full requests.

    wants(key, wanted) / forgets(key)   as partitions are added, progress, are held back or are left
    next_request() -> SessionRequest    has only the changes
    answered(...) / failed()            the leader has answered, or not

A request without an answer is followed by a full one, which also ends the old session.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pykafka_broker.protocol.epochs import INITIAL_EPOCH, NO_SESSION_ID, next_epoch
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

Key = TypeVar("Key")


class PartitionFetch(NamedTuple):
    """The fields of a fetch for one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class SessionRequest(NamedTuple, Generic[Key]):
    """The part of a fetch that the session decides."""

    session_id: int
    session_epoch: int
    named: dict[Key, PartitionFetch]
    forgotten: tuple[Key, ...] = ()


class FollowerSession(Generic[Key]):
    """The session of one fetcher with one leader."""

    __slots__ = ("_changed", "_epoch", "_forgotten", "_new", "_session_id", "wanted")

    def __init__(self) -> None:
        #: All partitions that are fetched, named in the next request or known to the session.
        self.wanted: dict[Key, PartitionFetch] = {}
        #: The changes that the leader does not know yet.
        self._changed: dict[Key, PartitionFetch] = {}
        #: The partitions that the leader does not know yet.
        self._new: set[Key] = set()
        #: The partitions that the leader still has in the session.
        self._forgotten: dict[Key, None] = {}
        self._session_id = NO_SESSION_ID
        self._epoch = INITIAL_EPOCH

    def wants(self, key: Key, wanted: PartitionFetch) -> None:
        """Fetch this from the next request on."""
        before = self.wanted.get(key)
        if before == wanted:
            return
        if before is None and key not in self._forgotten:
            self._new.add(key)
        self.wanted[key] = self._changed[key] = wanted
        self._forgotten.pop(key, None)

    def forgets(self, key: Key) -> None:
        """Stop fetching this partition."""
        if self.wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            if key in self._new:
                self._new.discard(key)
            else:
                self._forgotten[key] = None

    def next_request(self) -> SessionRequest[Key]:
        """The next request; `answered` or `failed` must follow."""
        if self._epoch == INITIAL_EPOCH:
            request = SessionRequest(self._session_id, INITIAL_EPOCH, dict(self.wanted))
        else:
            request = SessionRequest(self._session_id, self._epoch, self._changed, tuple(self._forgotten))
        self._changed, self._forgotten, self._new = {}, {}, set()
        return request

    def answered(self, error: ErrorCode, session_id: int) -> bool:
        """The leader has answered the request; return whether the answer is usable."""
        if error is not ErrorCode.NONE:
            if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION_ID
            self._epoch = INITIAL_EPOCH
            return False
        if session_id == NO_SESSION_ID:
            self._session_id, self._epoch = NO_SESSION_ID, INITIAL_EPOCH
        elif self._epoch == INITIAL_EPOCH or session_id != self._session_id:
            self._session_id, self._epoch = session_id, next_epoch(INITIAL_EPOCH)
        else:
            self._epoch = next_epoch(self._epoch)
        return True

    def failed(self) -> None:
        """There is no answer; the leader may have seen the request or not."""
        self._epoch = INITIAL_EPOCH
