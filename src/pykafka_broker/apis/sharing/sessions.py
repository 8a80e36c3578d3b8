"""Share sessions (KIP-932): the broker remembers a share group member's partitions between its requests.

A member has one session on each broker that it fetches from, identified by its group and its member id. The
epoch of a request decides: 0 begins a session, and drops an old one, whose records stay acquired; n, which
must be the session's epoch, continues it, and the request lists only changes; -1 ends it. ShareAcknowledge
moves the epoch as ShareFetch does, and never begins a session.

The answer to the first fetch lists every partition. A later answer lists partitions with records or an error,
those that had an error in the previous answer, and those that were added. `max_sessions` are kept
(`group.share.max.share.sessions`); further ones are refused, as sessions are never evicted. A session ends
with the connection on which it began; then a group without sessions is dropped.

Pure: connections are only compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Optional

from pykafka_broker.protocol.epochs import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.share_fetch import PartitionData

DEFAULT_MAX_SESSIONS = 2_000
#: The number of groups without a session that each connection keeps, so that their states need not be read
#: again.
MAX_ENDED_GROUPS = 100

#: Topic id and partition.
Place = tuple[bytes, int]
Answer = tuple[Place, "PartitionData"]
#: A topic id's name, None for an unknown one.
NameOf = Callable[[bytes], Optional[str]]


class Member(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class SharedPartition:
    """One partition that a member fetches."""

    __slots__ = ("is_due", "place", "topic")

    def __init__(self, place: Place, topic: str | None, *, is_due: bool = False) -> None:
        self.place = place
        #: The topic's name, kept if the topic is deleted; None for an id that was never known.
        self.topic = topic
        #: Whether the next answer has to list the partition.
        self.is_due = is_due

    def is_news(self, answer: PartitionData) -> bool:
        """Whether an answer has to list this partition; a partition with an error is due again."""
        is_news = self.is_due or answer.error_code != 0 or len(answer.records or b"") > 0
        self.is_due = answer.error_code != 0
        return is_news


class ShareSession:
    """A member's partitions, in the order in which they are served."""

    __slots__ = ("connection", "epoch", "member", "partitions")

    def __init__(self, member: Member, partitions: dict[Place, SharedPartition], connection: object) -> None:
        self.member = member
        self.partitions = partitions
        self.connection = connection
        #: The epoch of the next request.
        self.epoch = 1

    def move(self, epoch: int) -> None:
        """Process the epoch of a request.

        Raises:
            KafkaError: INVALID_SHARE_SESSION_EPOCH, it is not the session's epoch.
        """
        if epoch != self.epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        self.epoch = next_epoch(epoch)

    def served(self, place: Place) -> None:
        """Move a partition with records to the end, so that small limits do not starve the others."""
        self.partitions[place] = self.partitions.pop(place)


class ShareContext:
    """One ShareFetch: the partitions to serve in order, and how its answer relates to a session."""

    __slots__ = ("_expected_epoch", "_session", "partitions")

    def __init__(self, partitions: Iterable[SharedPartition], session: ShareSession | None = None) -> None:
        self.partitions = tuple(partitions)
        #: None for the first and the last fetch of a session.
        self._session = session
        self._expected_epoch = 0 if session is None else session.epoch

    def listed(self, answers: Iterable[Answer]) -> list[Answer]:
        """The answers to list.

        Raises:
            KafkaError: INVALID_SHARE_SESSION_EPOCH, a later request has moved the session.
        """
        session = self._session
        if session is None:
            return list(answers)
        if session.epoch != self._expected_epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        listed = []
        for place, answer in answers:
            partition = session.partitions.get(place)
            if partition is not None and not partition.is_news(answer):
                continue
            listed.append((place, answer))
            if partition is not None and len(answer.records or b"") > 0:
                session.served(place)
        return listed


class Ended(NamedTuple):
    """Sessions that have ended: the records that their members have acquired are to be released."""

    sessions: tuple[ShareSession, ...] = ()
    #: Groups that have no session left here: their share partitions may be dropped.
    emptied: tuple[str, ...] = ()


class _Connection:
    """The sessions that were begun on one connection."""

    __slots__ = ("ended_groups", "sessions")

    def __init__(self) -> None:
        #: The open sessions.
        self.sessions: dict[Member, ShareSession] = {}
        #: The groups of the last ended sessions, which may begin again.
        self.ended_groups: dict[str, None] = {}


class ShareSessions:
    """All share sessions of a broker."""

    def __init__(self, max_sessions: int = DEFAULT_MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[Member, ShareSession] = {}
        #: The number of sessions of each group.
        self._sizes: dict[str, int] = {}
        #: By connection; only of connections on which a session was begun.
        self._on: dict[object, _Connection] = {}
        #: Groups that `begin` has pushed out of their connections.
        self._pushed_out: list[str] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self,
        member: Member,
        epoch: int,
        asked: Iterable[Place],
        forgotten: Iterable[Place],
        name_of: NameOf,
        *,
        has_acknowledgements: bool,
        connection: object,
    ) -> ShareContext:
        """Process a ShareFetch: the partitions that it fetches.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED,
                INVALID_REQUEST for acknowledgements in a first fetch, or, as in Apache Kafka,
                UNKNOWN_SERVER_ERROR for a first fetch that names a partition twice.
        """
        if epoch == FINAL_EPOCH:
            self._session_of(member)
            return ShareContext(())
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            return self._first(member, list(asked), name_of, connection)
        session = self._session_of(member)
        session.move(epoch)
        for place in asked:
            if place not in session.partitions:
                session.partitions[place] = SharedPartition(place, name_of(place[0]), is_due=True)
        for place in forgotten:
            session.partitions.pop(place, None)
        for partition in session.partitions.values():
            partition.topic = name_of(partition.place[0]) or partition.topic
        return ShareContext(session.partitions.values(), session)

    def acknowledge(self, member: Member, epoch: int) -> None:
        """Process a ShareAcknowledge.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self._session_of(member)
        if epoch != FINAL_EPOCH:
            session.move(epoch)

    def end(self, member: Member) -> Ended:
        """End a session, if there is one. Its group is kept until the connection is lost."""
        session = self._sessions.pop(member, None)
        if session is None:
            return Ended()
        left = self._sizes.pop(member.group_id) - 1
        if left:
            self._sizes[member.group_id] = left
        begun = self._on.get(session.connection)
        if begun is None:
            return Ended((session,), self._emptied((member.group_id,)))
        begun.sessions.pop(member, None)
        begun.ended_groups.pop(member.group_id, None)
        begun.ended_groups[member.group_id] = None
        if len(begun.ended_groups) <= MAX_ENDED_GROUPS:
            return Ended((session,))
        longest_ago = next(iter(begun.ended_groups))
        del begun.ended_groups[longest_ago]
        return Ended((session,), self._emptied((longest_ago,)))

    def lost(self, connection: object) -> Ended:
        """End the sessions that were begun on a lost connection."""
        begun = self._on.pop(connection, None)
        if begun is None:
            return Ended()
        sessions = tuple(begun.sessions.values())
        groups = dict.fromkeys((*begun.ended_groups, *(session.member.group_id for session in sessions)))
        for session in sessions:
            self.end(session.member)
        return Ended(sessions, self._emptied(groups))

    def pushed_out(self) -> tuple[str, ...]:
        """Groups without a session here that calls of `begin` have pushed out of their connections, once."""
        groups, self._pushed_out = self._pushed_out, []
        return self._emptied(groups)

    def _emptied(self, groups: Iterable[str]) -> tuple[str, ...]:
        return tuple(group_id for group_id in groups if group_id not in self._sizes)

    def has_begun_on(self, connection: object) -> bool:
        """Whether a session was ever begun on this connection: `lost` must be called at its end."""
        return connection in self._on

    def clear(self) -> None:
        """End all sessions: share groups are disabled."""
        self._sessions.clear()
        self._sizes.clear()
        for begun in self._on.values():
            begun.sessions.clear()

    def _session_of(self, member: Member) -> ShareSession:
        session = self._sessions.get(member)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def _first(self, member: Member, asked: list[Place], name_of: NameOf, connection: object) -> ShareContext:
        self._pushed_out += self.end(member).emptied
        partitions = {place: SharedPartition(place, name_of(place[0])) for place in asked}
        if len(partitions) < len(asked):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if len(self._sessions) >= self._max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(member, partitions, connection)
        self._sessions[member] = session
        self._on.setdefault(connection, _Connection()).sessions[member] = session
        self._sizes[member.group_id] = self._sizes.get(member.group_id, 0) + 1
        return ShareContext(partitions.values())
