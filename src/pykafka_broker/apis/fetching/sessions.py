"""Incremental fetch sessions (KIP-227): the broker remembers a consumer's partitions between its requests.

(session id, epoch) of a request decides: (any, -1) no session, and an old one is closed; (any, 0) a full
request that opens a new session; (id, n) an incremental request that lists only changes. An incremental
answer lists only partitions with records, an error, a diverging epoch, or a moved high watermark or log start
offset.

The cache holds `max_entries` sessions (`max.incremental.fetch.session.cache.slots`). If it is full, a new
session replaces one unused for `eviction_ms`, or a smaller one created before that time; else the client gets
no session, which is always allowed. A follower, which has many partitions, replaces any session of a
consumer, and a consumer none of a follower. Pure: the clock and the random ids are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pykafka_broker.protocol.epochs import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION_ID, next_epoch
from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.kept_waits import KeptWaits
    from pykafka_broker.log.partition.state import LogState
    from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

#: A session unused for this time may be evicted (Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
EVICTION_MS = 120_000
DEFAULT_MAX_ENTRIES = 1_000

#: The first Fetch version that names topics by id.
TOPIC_ID_VERSION = 13

Key = tuple[object, int]


class WantedPartition:
    """One partition of a fetch: the newest request, and the last answer about it in a session."""

    __slots__ = (
        "asked_log_start_offset",
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        #: -1 means that the next incremental answer must list the partition.
        self.high_watermark = -1
        self.log_start_offset = -1
        self.ask(asked)

    def ask(self, asked: FetchPartition) -> None:
        """Take over the parameters of a newer request."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        #: The log start offset of a follower.
        self.asked_log_start_offset = asked.log_start_offset

    def is_news(self, answer: PartitionData) -> bool:
        """True if an incremental answer must list this partition."""
        return (
            bool(answer.records)
            or bool(answer.error_code)
            or answer.diverging_epoch is not None
            or answer.preferred_read_replica >= 0
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
        )

    def knows(self, state: LogState) -> bool:
        """True if the reader knows the offsets in `state` already."""
        return self.high_watermark == state.high_watermark and self.log_start_offset == state.log_start_offset

    def remember(self, answer: PartitionData) -> None:
        """Remember that this answer is sent to the reader."""
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset


class FetchSession:
    """A remembered fetch: its partitions in the order they are served."""

    __slots__ = (
        "created_ms",
        "epoch",
        "is_of_follower",
        "kept",
        "last_used_ms",
        "partitions",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[Key, WantedPartition],
        uses_topic_ids: bool,
        is_of_follower: bool,
        now_ms: int,
    ) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.is_of_follower = is_of_follower
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        #: What the last fetch of a follower kept for the next.
        self.kept: KeptWaits | None = None

    @property
    def rank(self) -> tuple[bool, int]:
        """The session of the lowest rank makes room for others."""
        return self.is_of_follower, len(self.partitions)

    def keep(self, waits: KeptWaits | None) -> None:
        """Keep this for the next fetch, and close what was kept before."""
        before, self.kept = self.kept, waits
        if before is not None:
            before.close()

    def update(self, request: FetchRequest, name_of: Callable[[bytes], str | None]) -> None:
        """Add and change the partitions that the request names, drop those it forgets."""
        if request.forgotten_topics_data:
            self.keep(None)
        partitions, kept = self.partitions, self.kept
        identity: object
        for topic in request.topics:
            identity = topic.topic_id if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                known = partitions.get((identity, asked.partition))
                if known is not None:
                    known.ask(asked)
                    if kept is not None:
                        kept.named(known)
                    continue
                name = name_of(topic.topic_id) if self.uses_topic_ids else topic.topic
                partitions[identity, asked.partition] = WantedPartition(name, topic.topic_id, asked)
        for forgotten in request.forgotten_topics_data:
            identity = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                partitions.pop((identity, index), None)


class FetchContext:
    """One fetch: the partitions to serve in order, and how its answer relates to a session."""

    __slots__ = (
        "_cache",
        "_expected_epoch",
        "_kind",
        "_now_ms",
        "_session",
        "_uses_topic_ids",
        "error",
        "is_of_follower",
        "wanted",
    )

    def __init__(
        self,
        cache: FetchSessionCache,
        kind: str,
        wanted: dict[Key, WantedPartition],
        *,
        now_ms: int,
        uses_topic_ids: bool,
        session: FetchSession | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self._cache = cache
        self._kind = kind
        self._now_ms = now_ms
        self._uses_topic_ids = uses_topic_ids
        self._session = session
        self._expected_epoch = session.epoch if session is not None else 0
        self.wanted = wanted
        self.error = error
        #: Whether another broker fetches, which has proved that it is one.
        self.is_of_follower = False

    @property
    def lists_news(self) -> bool:
        """Whether the answer lists only what its reader does not know."""
        return self._session is not None

    @property
    def may_keep(self) -> bool:
        """Whether this is the newest fetch of a session that is still cached."""
        session = self._session
        return session is not None and session.epoch == self._expected_epoch and self._cache.has(session)

    @property
    def kept(self) -> KeptWaits | None:
        """What the previous fetch kept."""
        return self._session.kept if self._session is not None and self.may_keep else None

    def keep(self, waits: KeptWaits | None) -> None:
        """Keep this for the next fetch of the session; call only if `may_keep`."""
        assert self._session is not None
        self._session.keep(waits)

    def listed(
        self, answers: list[tuple[WantedPartition, PartitionData]]
    ) -> list[tuple[WantedPartition, PartitionData]]:
        """The partitions that `finish` would list."""
        session = self._session
        if session is None:
            return answers
        if session.epoch != self._expected_epoch:
            return []
        return [(partition, answer) for partition, answer in answers if partition.is_news(answer)]

    def finish_empty(self) -> tuple[ErrorCode, int]:
        """The top-level error and the session id of an answer that lists nothing, and opens no session."""
        session = self._session
        if session is None:
            return ErrorCode.NONE, NO_SESSION_ID
        if session.epoch != self._expected_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id
        return ErrorCode.NONE, session.session_id

    def finish(
        self, answers: list[tuple[WantedPartition, PartitionData]]
    ) -> tuple[ErrorCode, int, list[tuple[WantedPartition, PartitionData]]]:
        """The top-level error, the session id to answer with, and the partitions to list."""
        if self._kind == "full":
            for partition, answer in answers:
                partition.remember(answer)
            session_id = self._cache.open(
                self.wanted, self._uses_topic_ids, self.is_of_follower, self._now_ms
            )
            return ErrorCode.NONE, session_id, answers
        session = self._session
        if session is None:
            return self.error, NO_SESSION_ID, answers
        if session.epoch != self._expected_epoch:
            # The same incremental request was processed twice; only one of them may move the session.
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, []
        listed = [(partition, answer) for partition, answer in answers if partition.is_news(answer)]
        partitions = session.partitions
        for partition, answer in listed:
            partition.remember(answer)
            if answer.records:
                # Served partitions go to the end, so that a small byte limit does not starve the others.
                key = _key(partition, session.uses_topic_ids)
                served = partitions.pop(key, None)
                if served is not None:
                    partitions[key] = served
        return ErrorCode.NONE, session.session_id, listed


def _key(partition: WantedPartition, uses_topic_ids: bool) -> Key:
    return (partition.topic_id if uses_topic_ids else partition.topic, partition.partition)


class FetchSessionCache:
    """All fetch sessions of a broker."""

    def __init__(
        self,
        random_id: Callable[[], int],
        max_entries: int = DEFAULT_MAX_ENTRIES,
        eviction_ms: int = EVICTION_MS,
    ) -> None:
        self.max_entries = max_entries
        self._eviction_ms = eviction_ms
        self._random_id = random_id
        #: In order of last use, oldest first.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """The number of partitions in all sessions."""
        return sum([len(session.partitions) for session in self._sessions.values()])

    def partitions_of(self, session_id: int) -> list[WantedPartition]:
        """The partitions of a session; none if it is not cached."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions.values())

    def begin(
        self, request: FetchRequest, version: int, now_ms: int, name_of: Callable[[bytes], str | None]
    ) -> FetchContext:
        """The partitions that `request` fetches; `name_of` returns a topic's name, None for an unknown id."""
        by_id = version >= TOPIC_ID_VERSION
        session_id, epoch = request.session_id, request.session_epoch

        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION_ID:
                self._close(session_id)
            kind = "full" if epoch == INITIAL_EPOCH else "sessionless"
            wanted = _wanted(request, by_id, name_of)
            return FetchContext(self, kind, wanted, now_ms=now_ms, uses_topic_ids=by_id)

        session = self._sessions.get(session_id)
        error = ErrorCode.NONE
        if session is None:
            error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        elif session.epoch != epoch:
            error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
        elif session.uses_topic_ids != by_id:
            error = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if session is None or error is not ErrorCode.NONE:
            return FetchContext(self, "error", {}, now_ms=now_ms, uses_topic_ids=by_id, error=error)

        if request.topics or request.forgotten_topics_data:
            session.update(request, name_of)
        if not session.partitions:
            # A request that both names and forgets its last partitions is answered as a sessionless one.
            self._close(session_id)
            wanted = _wanted(request, by_id, name_of)
            return FetchContext(self, "sessionless", wanted, now_ms=now_ms, uses_topic_ids=by_id)
        session.last_used_ms = now_ms
        session.epoch = next_epoch(session.epoch)
        self._sessions[session_id] = self._sessions.pop(session_id)
        if by_id and session.kept is None:
            _resolve_names(session.partitions.values(), name_of)
        return FetchContext(
            self, "incremental", session.partitions, now_ms=now_ms, uses_topic_ids=by_id, session=session
        )

    def open(
        self, wanted: dict[Key, WantedPartition], uses_topic_ids: bool, is_of_follower: bool, now_ms: int
    ) -> int:
        """Cache a full fetch; its new session id, or 0 if there is no room for it."""
        rank = is_of_follower, len(wanted)
        if len(self._sessions) >= self.max_entries and not self._make_room(rank, now_ms):
            return NO_SESSION_ID
        session_id = self._random_id()
        while session_id in self._sessions or session_id == NO_SESSION_ID:
            session_id = self._random_id()
        self._sessions[session_id] = FetchSession(session_id, wanted, uses_topic_ids, is_of_follower, now_ms)
        return session_id

    def has(self, session: FetchSession) -> bool:
        """Whether the session is still cached."""
        return self._sessions.get(session.session_id) is session

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.keep(None)

    def _make_room(self, rank: tuple[bool, int], now_ms: int) -> bool:
        """Close a session for one of this rank, if there is one to close."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self._close(oldest.session_id)
            return True
        is_of_follower, _ = rank
        may_go = (
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > self._eviction_ms
            or (is_of_follower and not session.is_of_follower)
        )
        lowest = min(may_go, key=lambda session: session.rank, default=None)
        if lowest is None or lowest.rank >= rank:
            return False
        self._close(lowest.session_id)
        return True


def _wanted(
    request: FetchRequest, by_id: bool, name_of: Callable[[bytes], str | None]
) -> dict[Key, WantedPartition]:
    """The partitions that a request names."""
    wanted: dict[Key, WantedPartition] = {}
    for topic in request.topics:
        name = name_of(topic.topic_id) if by_id else topic.topic
        identity: object = topic.topic_id if by_id else name
        for partition in topic.partitions:
            wanted[identity, partition.partition] = WantedPartition(name, topic.topic_id, partition)
    return wanted


def _resolve_names(partitions: Iterable[WantedPartition], name_of: Callable[[bytes], str | None]) -> None:
    """Set the names of topic ids that were unknown in earlier requests, if they are known now."""
    for partition in partitions:
        if partition.topic is None:
            partition.topic = name_of(partition.topic_id)
