"""One fetcher: copies partitions that one broker leads, over one connection to it.

In a round the fetcher gives the changes since the last round to the session, asks for the leader's offsets if
a log is out of its range, or else sends one Fetch for all partitions and appends its answer. Partitions
without news are neither in the request nor in the answer, and cost nothing.

`core/fetch_session.py` decides the content of a request; a `FollowingReplica` applies an answer to its log.
Without an answer (no connection, a time-out, a malformed answer) the fetcher pauses for
`replica.fetch.backoff.ms` and connects again; a partition whose answer is an error pauses alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.epochs import INITIAL_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykafka_broker.replication.broker_connection import BrokerConnection
from pykafka_broker.replication.core.fetch_session import FollowerSession, SessionRequest
from pykafka_broker.replication.core.following import Phase
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.following_replica import FollowedLogs, FollowingPorts, FollowingReplica
from pykafka_broker.replication.partition import Partition
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import listed

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

#: The timestamps in ListOffsets that ask for the end and for the start of a log.
TIMESTAMPS = {Phase.ASKING_END: -1, Phase.ASKING_START: -2}
#: The first Fetch version with topic ids; a name may belong to another topic since.
LOWEST_FETCH_VERSION = 13
#: The leader's errors while only one of both brokers knows of a new topic or leader.
NEWS_ON_ITS_WAY = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
#: After this many written bytes the event loop does other work.
BYTES_IN_TURN = 1024 * 1024

#: Topic id and partition.
Key = tuple[bytes, int]


class FetcherSettings(NamedTuple):
    """The keys `replica.fetch.*` and `replica.socket.timeout.ms`."""

    node_id: int
    max_bytes: int = 1024 * 1024
    response_max_bytes: int = 10 * 1024 * 1024
    min_bytes: int = 1
    wait_max_ms: int = 500
    backoff_ms: int = 1_000
    socket_timeout_ms: int = 30_000


class FetcherPorts(NamedTuple):
    """The parts of the node that fetchers use."""

    clock: Clock
    logs: FollowedLogs
    #: `connect(leader_id, fetcher_id)`; raises OSError, ProtocolError or KafkaError.
    connect: Callable[[int, int], Awaitable[BrokerConnection]]
    #: The epoch of this broker's registration.
    broker_epoch: Callable[[], int]
    #: The rate limit of all fetchers together for throttled replicas that lag (KIP-73).
    throttled_rate: RateLimit


def key_of(partition: Partition) -> Key:
    """The key of a partition in sessions."""
    return partition.topic_id, partition.partition


class ReplicaFetcher:
    """Fetches from one leader. Event loop only; `run` is its task."""

    def __init__(
        self, leader_id: int, fetcher_id: int, ports: FetcherPorts, settings: FetcherSettings
    ) -> None:
        self.name = (
            f"[ReplicaFetcher replicaId={settings.node_id}, leaderId={leader_id}, fetcherId={fetcher_id}]"
        )
        self._leader_id = leader_id
        self._fetcher_id = fetcher_id
        self._ports = ports
        self._settings = settings
        self._following_ports = FollowingPorts(
            self.name, ports.clock, ports.logs, ports.throttled_rate, settings.backoff_ms
        )
        self._followers: dict[Key, FollowingReplica] = {}
        #: Fetch requests that were sent.
        self.fetches = 0
        self._session: FollowerSession[Key] = FollowerSession()
        #: Partitions that the next request must tell the leader about.
        self._changed: dict[Key, None] = {}
        #: Partitions that are held back, each with the end of its pause.
        self._held_back: dict[Key, int] = {}
        self._connection: BrokerConnection | None = None
        self._news: asyncio.Future[None] | None = None
        self._is_failing = False

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to fetch."""
        return not self._followers

    @property
    def followers(self) -> Collection[FollowingReplica]:
        """The partitions that it fetches."""
        return self._followers.values()

    def follow(self, partition: Partition) -> None:
        """Fetch a partition in its current leader epoch."""
        self.leave(partition)
        key = key_of(partition)
        self._followers[key] = FollowingReplica(partition, self._following_ports)
        self._note_change(key)

    def leave(self, partition: Partition) -> None:
        """Stop fetching a partition; nothing more is written to its log."""
        key = key_of(partition)
        follower = self._followers.pop(key, None)
        if follower is not None:
            follower.is_current = False
            self._held_back.pop(key, None)
            self._note_change(key)

    def _note_change(self, key: Key) -> None:
        self._changed[key] = None
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                try:
                    await self._round()
                except (OSError, ProtocolError, KafkaError) as error:
                    await self._failed(error)
                except Exception as error:
                    logger.exception("%s Unexpected error", self.name)
                    await self._failed(error)
        finally:
            await self._hang_up()

    async def _failed(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_failing else logging.WARNING
        logger.log(level, "%s Error when sending a request to the leader: %s", self.name, error)
        self._is_failing = True
        self._session.failed()
        await self._hang_up()
        await self._ports.clock.sleep(self._settings.backoff_ms)

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # --- a round ----------------------------------------------------------------------------------

    async def _round(self) -> None:
        """Send the leader one round of requests, or wait until there is something to ask."""
        asking = await self._prepare()
        asks = any(asking.values())
        if not (self._session.wanted or asks):
            await self._wait_for_news()
            return
        connection = await self._connected()
        for phase, followers in asking.items():
            if followers:
                await self._ask_offsets(connection, followers, phase)
        if self._session.wanted and not asks:
            await self._fetch(connection)
        self._is_failing = False

    async def _prepare(self) -> dict[Phase, list[FollowingReplica]]:
        """Update the session; return the partitions that must ask for the leader's offsets."""
        now_ms = self._ports.clock.monotonic_ms()
        for key, until_ms in tuple(self._held_back.items()):
            if until_ms <= now_ms:
                del self._held_back[key]
                self._changed[key] = None
        changed, self._changed = self._changed, {}
        asking: dict[Phase, list[FollowingReplica]] = {Phase.ASKING_END: [], Phase.ASKING_START: []}
        for key in changed:
            follower = self._followers.get(key)
            if follower is not None and follower.has_to_catch_up(now_ms):
                await follower.catch_up()
            if follower is None or not follower.is_current:
                self._session.forgets(key)
                continue
            due_ms = follower.due_ms(now_ms)
            if due_ms == now_ms and follower.phase is Phase.FETCHING:
                self._session.wants(key, follower.wanted)
                continue
            self._session.forgets(key)
            if due_ms == now_ms:
                asking[follower.phase].append(follower)
            elif due_ms is not None:
                self._held_back[key] = due_ms
        return asking

    async def _wait_for_news(self) -> None:
        """Return when a partition has changed, or the pause of one has ended."""
        if self._changed:
            return
        clock = self._ports.clock
        self._news = news = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not news.done():
                news.set_result(None)

        timer = clock.call_at(min(self._held_back.values()), wake) if self._held_back else None
        try:
            await news
        finally:
            self._news = None
            if timer is not None:
                timer.cancel()

    async def _connected(self) -> BrokerConnection:
        connection = self._connection
        if connection is None or connection.is_closed:
            await self._hang_up()
            self._session.failed()
            connection = self._connection = await self._ports.connect(self._leader_id, self._fetcher_id)
        return connection

    # --- fetching ---------------------------------------------------------------------------------

    async def _fetch(self, connection: BrokerConnection) -> None:
        asked = self._session.next_request()
        request = self._request(asked)
        version = connection.newest_version(request)
        if version < LOWEST_FETCH_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"The leader knows only version {version} of Fetch"
            )
        if version < 15:
            request.replica_id, request.replica_state = self._settings.node_id, None
        self.fetches += 1
        response: FetchResponse = await connection.send(
            request, version, timeout_ms=self._settings.socket_timeout_ms
        )
        error = error_of(response.error_code)
        if not self._session.answered(error, response.session_id):
            if asked.session_epoch == INITIAL_EPOCH:
                raise KafkaError(error)  # it refuses the fetch itself: the next one follows after a pause
            logger.info("%s The leader ends the fetch session: %s", self.name, error.name)
            return
        answers = [
            ((topic.topic_id, data.partition_index), data)
            for topic in response.responses
            for data in topic.partitions
        ]
        await self._begin_epochs(answers)
        written = 0
        refused: dict[tuple[int, ErrorCode], list[str]] = {}
        for key, data in answers:
            follower, wanted = self._followers.get(key), self._session.wanted.get(key)
            if follower is None or wanted is None:
                continue
            await follower.fetched(wanted, data)
            if follower.refusals:
                error = error_of(data.error_code)
                level = _level_of(error, follower.refusals)
                refused.setdefault((level, error), []).append(follower.partition.log.name)
            self._changed[key] = None
            written += len(data.records or b"")
            if written >= BYTES_IN_TURN:
                written = 0
                await self._ports.clock.sleep(0)
        self._tell_refused(refused)

    async def _begin_epochs(self, answers: Iterable[tuple[Key, PartitionData]]) -> None:
        """Make the files of the leader epochs that begin with these answers, all at once."""
        dues = []
        for key, data in answers:
            follower, wanted = self._followers.get(key), self._session.wanted.get(key)
            if follower is not None and wanted is not None and data.records:
                due = follower.begin_epoch(wanted, data.records)
                if due is not None:
                    dues.append(due)
        if dues:
            # An append without its file raises the error.
            await self._ports.logs.deferred_files.make_all(dues)

    def _tell_refused(self, refused: dict[tuple[int, ErrorCode], list[str]]) -> None:
        """One line for each error of an answer, with its reason, and the first partitions."""
        for (level, error), names in refused.items():
            of = names[0] if len(names) == 1 else f"{len(names):,} partitions ({listed(names)})"
            reason = error.message or "no reason"
            logger.log(level, "%s The leader answers %s for %s: %s", self.name, error.name, of, reason)

    def _request(self, asked: SessionRequest[Key]) -> FetchRequest:
        settings = self._settings
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, index), wanted in asked.named.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    log_start_offset=wanted.log_start_offset,
                    partition_max_bytes=settings.max_bytes,
                )
            )
        forgotten: dict[bytes, ForgottenTopic] = {}
        for topic_id, index in asked.forgotten:
            if topic_id not in forgotten:
                forgotten[topic_id] = ForgottenTopic(topic_id=topic_id, partitions=[])
            forgotten[topic_id].partitions.append(index)
        return FetchRequest(
            replica_state=ReplicaState(replica_id=settings.node_id, replica_epoch=self._ports.broker_epoch()),
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    # --- the leader's offsets ---------------------------------------------------------------------

    async def _ask_offsets(
        self, connection: BrokerConnection, followers: list[FollowingReplica], asked: Phase
    ) -> None:
        for follower in followers:
            self._changed[key_of(follower.partition)] = None  # also if there is no answer
        topics: dict[str, ListOffsetsTopic] = {}
        for follower in followers:
            partition = follower.partition
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=follower.leader_epoch,
                    timestamp=TIMESTAMPS[asked],
                )
            )
        request = ListOffsetsRequest(replica_id=self._settings.node_id, topics=list(topics.values()))
        response: ListOffsetsResponse = await connection.send(
            request, connection.newest_version(request), timeout_ms=self._settings.socket_timeout_ms
        )
        answers = {
            (topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        for follower in followers:
            partition = follower.partition
            answer = answers.get((partition.topic, partition.partition))
            if answer is not None and follower.is_current:
                await follower.offset_told(asked, error_of(answer.error_code), answer.offset)


def _level_of(error: ErrorCode, refusals: int) -> int:
    """The log level for the `refusals`-th consecutive error of a partition.

    INFO once: for the first error, or the second if metadata may still be on its way. DEBUG otherwise, and
    for OFFSET_OUT_OF_RANGE, after which the fetch continues at another offset.
    """
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return logging.DEBUG
    return logging.INFO if refusals == (2 if error in NEWS_ON_ITS_WAY else 1) else logging.DEBUG
