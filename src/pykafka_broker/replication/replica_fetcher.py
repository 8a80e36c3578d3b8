"""One fetcher: copies partitions that one broker leads, over one connection to it.

A round of the fetcher: what has changed since the last one is told to the session, leaders' offsets are asked
for where a log has lost its place, then one Fetch asks for all partitions, and its answer is written down.
Partitions without news are neither in the request nor in the answer, and cost nothing. Records go from the
received frame to the log without a copy.

What an answer means is decided by `core/following.py`, what a request says by `core/fetch_session.py`.
Without an answer (no connection, a time-out, a malformed answer) the fetcher pauses for
`replica.fetch.backoff.ms` and connects anew; a partition whose answer is an error pauses alone.

Truncation waits for the disk on the event loop. Before anything is appended in the place of removed records,
the lower recovery point is on disk (`checkpoint_truncated`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.machine.step import Effect, Start
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
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
from pykafka_broker.replication.broker_connections import BrokerConnection
from pykafka_broker.replication.core import following as rules
from pykafka_broker.replication.core.fetch_session import FollowerSession, SessionRequest, Wanted
from pykafka_broker.replication.core.following import Answer, EpochEnd, Phase
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.partition import Partition
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import listed

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
#: The first Fetch version with topic ids: a name may be that of a topic which has been deleted since.
LOWEST_FETCH_VERSION = 13
#: What a leader answers while the news of a topic, or of another leader, has reached only one of the two.
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
#: Other work has its turn after so many bytes were written.
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


class FollowedLogs(Protocol):
    """The work on logs that waits for disks."""

    def make_names(self, due: NamesDue) -> Awaitable[None]:
        """Make the file that an append has missed; raises KafkaError."""
        ...

    def make_all_names(self, dues: Sequence[NamesDue]) -> Awaitable[object]:
        """Make the files that these appends will miss, as far as the disks have them."""
        ...

    def checkpoint_truncated(self, log: PartitionLog) -> Awaitable[bool]:
        """Write down that a log has been truncated; return whether that is done."""
        ...

    def flush(self, log: PartitionLog) -> Awaitable[object]:
        """Make a log durable; raises KafkaError."""
        ...

    def is_full(self, log: PartitionLog) -> bool:
        """Whether the disk of a log refuses writes for want of room."""
        ...

    def write_failed(self, log: PartitionLog, error: OSError) -> None:
        """The disk of a log has refused a truncation."""
        ...


class FetcherPorts(NamedTuple):
    """The parts of the node that fetchers use."""

    clock: Clock
    logs: FollowedLogs
    #: `connect(leader_id, fetcher_id)`; raises OSError, ProtocolError or KafkaError.
    connect: Callable[[int, int], Awaitable[BrokerConnection]]
    #: The epoch of this broker's registration.
    broker_epoch: Callable[[], int]
    #: What all fetchers together may fetch for throttled replicas that lag (KIP-73).
    throttled_rate: RateLimit


class _Follower:
    """One partition of a fetcher, until it is left or followed in another epoch."""

    __slots__ = ("following", "is_current", "is_unsettled", "lags", "partition", "refusals", "todo")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        state = partition.log.state
        damaged_from = None if partition.is_in_sync else state.damaged_from
        step = rules.follow(partition.leader_epoch, state, damaged_from)
        self.following = step.state
        #: To be carried out before the leader is asked for anything.
        self.todo = step.effects
        #: False once the partition was left: answers about it say nothing any more.
        self.is_current = True
        #: A truncation is not written down yet.
        self.is_unsettled = False
        #: What the newest answer brought did not reach the leader's high watermark, or there was none yet.
        self.lags = True
        #: How many answers in a row were errors.
        self.refusals = 0

    @property
    def has_work(self) -> bool:
        """Something is left to do before the leader is asked."""
        return self.is_unsettled or bool(self.todo)


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
        self._followers: dict[Key, _Follower] = {}
        self._session: FollowerSession[Key] = FollowerSession()
        #: Partitions about which the next request says something else than the one before.
        self._changed: dict[Key, None] = {}
        #: Partitions that are held back, and until when.
        self._held_back: dict[Key, int] = {}
        self._connection: BrokerConnection | None = None
        self._news: asyncio.Future[None] | None = None
        self._is_failing = False

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to fetch."""
        return not self._followers

    def follow(self, partition: Partition) -> None:
        """Fetch a partition in its present leader epoch."""
        self.leave(partition)
        key = key_of(partition)
        self._followers[key] = _Follower(partition)
        self._note_change(key)

    def leave(self, partition: Partition) -> None:
        """Do not fetch a partition any more; nothing is written to its log from now on."""
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
        """Ask the leader once, or wait until there is something to ask for."""
        asking_end, asking_start = await self._prepare()
        if not (self._session.wanted or asking_end or asking_start):
            await self._wait_for_news()
            return
        connection = await self._connected()
        if asking_end:
            await self._ask_offsets(connection, asking_end, LATEST_TIMESTAMP)
        if asking_start:
            await self._ask_offsets(connection, asking_start, EARLIEST_TIMESTAMP)
        if self._session.wanted and not (asking_end or asking_start):
            await self._fetch(connection)
        self._is_failing = False

    async def _prepare(self) -> tuple[list[_Follower], list[_Follower]]:
        """Bring the session up to date; return the partitions of which leaders' offsets are to be asked."""
        now_ms = self._ports.clock.monotonic_ms()
        for key, until_ms in tuple(self._held_back.items()):
            if until_ms <= now_ms:
                del self._held_back[key]
                self._changed[key] = None
        changed, self._changed = self._changed, {}
        asking: dict[Phase, list[_Follower]] = {Phase.ASKING_END: [], Phase.ASKING_START: []}
        for key in changed:
            follower = self._followers.get(key)
            if follower is not None and follower.has_work and rules.is_due(follower.following, now_ms):
                await self._catch_up(follower)
            if follower is None or not follower.is_current:
                self._session.forgets(key)
                continue
            following = follower.following
            if not rules.is_due(following, now_ms):
                self._session.forgets(key)
                if following.retry_at_ms is not None:
                    self._held_back[key] = following.retry_at_ms
            elif following.phase is Phase.FETCHING and self._is_too_fast(follower, now_ms):
                self._session.forgets(key)
                self._held_back[key] = now_ms + self._settings.backoff_ms
            elif following.phase is Phase.FETCHING:
                self._session.wants(key, _wanted(follower))
            else:
                self._session.forgets(key)
                asking[following.phase].append(follower)
        return asking[Phase.ASKING_END], asking[Phase.ASKING_START]

    def _is_too_fast(self, follower: _Follower, now_ms: int) -> bool:
        """Whether this replica is throttled, and throttled ones have fetched more than they may."""
        is_slow = follower.lags and follower.partition.is_throttled_follower
        return is_slow and self._ports.throttled_rate.is_exceeded(now_ms)

    async def _catch_up(self, follower: _Follower) -> None:
        """Carry out what is left to do before the leader is asked."""
        todo, follower.todo = follower.todo, ()
        await self._carry_out(follower, todo, None)
        if follower.is_unsettled and follower.is_current:
            await self._settle(follower)

    async def _wait_for_news(self) -> None:
        """Return when a partition has changed, or one that is held back is due."""
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
        response: FetchResponse = await connection.send(
            request, version, timeout_ms=self._settings.socket_timeout_ms
        )
        error = ErrorCode(response.error_code)
        if not self._session.answered(error, response.session_id):
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
            follower.refusals = follower.refusals + 1 if data.error_code else 0
            if follower.refusals:
                error = ErrorCode(data.error_code)
                level = _level_of(error, follower.refusals)
                refused.setdefault((level, error), []).append(follower.partition.log.name)
            await self._answered(follower, wanted, data)
            self._changed[key] = None
            written += len(data.records or b"")
            if written >= BYTES_IN_TURN:
                written = 0
                await self._ports.clock.sleep(0)
        self._tell_refused(refused)

    async def _begin_epochs(self, answers: Iterable[tuple[Key, PartitionData]]) -> None:
        """Have the files made, all at once, of the leader epochs that begin with these answers."""
        dues = []
        for key, data in answers:
            follower = self._followers.get(key)
            if follower is None or not data.records:
                continue
            log, leader_epoch = follower.partition.log, follower.following.leader_epoch
            if log.state.latest_epoch == leader_epoch:
                continue  # of most answers
            wanted = self._session.wanted.get(key)
            if wanted is not None and wanted.leader_epoch == leader_epoch:
                due = log.replica_writer.begin_epoch(data.records, leader_epoch)
                if due is not None:
                    dues.append(due)
        if dues:
            await self._ports.logs.make_all_names(dues)  # an append that has no file says so itself

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

    async def _answered(self, follower: _Follower, wanted: Wanted, data: PartitionData) -> None:
        error = ErrorCode(data.error_code)
        diverging = data.diverging_epoch
        if diverging is not None and diverging.end_offset < 0 and diverging.epoch < 0:
            diverging = None
        step = rules.fetched(
            follower.following,
            wanted,
            Answer(error, None if diverging is None else EpochEnd(diverging.epoch, diverging.end_offset)),
            follower.partition.log.state,
            self._retry_at_ms(),
        )
        follower.following = step.state
        await self._carry_out(follower, step.effects, data)
        if error is ErrorCode.NONE:
            follower.lags = data.high_watermark > follower.following.fetch_offset
            if data.records and follower.partition.is_throttled_follower:
                self._ports.throttled_rate.count(len(data.records), self._ports.clock.monotonic_ms())

    def _retry_at_ms(self) -> int:
        return self._ports.clock.monotonic_ms() + self._settings.backoff_ms

    # --- the leader's offsets ---------------------------------------------------------------------

    async def _ask_offsets(
        self, connection: BrokerConnection, followers: list[_Follower], timestamp: int
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
                    current_leader_epoch=follower.following.leader_epoch,
                    timestamp=timestamp,
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
        told = rules.leader_end_told if timestamp == LATEST_TIMESTAMP else rules.leader_start_told
        for follower in followers:
            partition = follower.partition
            answer = answers.get((partition.topic, partition.partition))
            if answer is None or not follower.is_current:
                continue
            step = told(
                follower.following,
                ErrorCode(answer.error_code),
                answer.offset,
                partition.log.state,
                self._retry_at_ms(),
            )
            follower.following = step.state
            await self._carry_out(follower, step.effects, None)

    # --- the log ----------------------------------------------------------------------------------

    async def _carry_out(
        self, follower: _Follower, effects: Iterable[Effect], data: PartitionData | None
    ) -> None:
        """Carry out what the core has decided on an answer; a partition for which that fails goes its own
        way.
        """
        try:
            for effect in effects:
                assert isinstance(effect, Start)
                work = effect.work
                if isinstance(work, rules.Append):
                    assert data is not None
                    await self._append(follower, data)
                elif isinstance(work, rules.TruncateTo):
                    await self._truncate(follower, work.offset, is_reset=False)
                elif isinstance(work, rules.StartAt):
                    await self._truncate(follower, work.offset, is_reset=True)
                # The leader is asked for its offsets in the next round: the phase says so.
        except KafkaError as error:
            self._refused(follower, error)
        except OSError as error:
            logger.error("%s %s cannot be truncated: %s", self.name, follower.partition.log.name, error)
            self._ports.logs.write_failed(follower.partition.log, error)
            follower.following = rules.stopped(follower.following)
        except Exception:
            logger.exception("%s %s is not followed any more", self.name, follower.partition.log.name)
            follower.following = rules.stopped(follower.following)

    async def _append(self, follower: _Follower, data: PartitionData) -> None:
        """Append the records of an answer if there are any, and go by the leader's offsets."""
        partition, following = follower.partition, follower.following
        if data.records:
            if partition.log.state.log_end_offset != following.fetch_offset:
                raise IllegalState(
                    f"Offset mismatch for partition {partition.log.name}: fetched offset = "
                    f"{following.fetch_offset}, log end offset = {partition.log.state.log_end_offset}."
                )
            if not await self._write(follower, data.records):
                return
        log = partition.log
        state = log.state
        state.advance_high_watermark(data.high_watermark)
        log.trimmer.advance_log_start_offset(min(data.log_start_offset, state.high_watermark))
        follower.following = rules.at_log_end(following, state)

    async def _write(self, follower: _Follower, records: Buffer) -> bool:
        """Append the records of an answer; False if the partition was left meanwhile."""
        logs, left = self._ports.logs, memoryview(records)
        while True:
            log = follower.partition.log
            copied = log.replica_writer.append(
                left,
                leader_epoch=follower.following.leader_epoch,
                now_ms=self._ports.clock.now_ms(),
                defers_names=True,
            )
            if copied.names_due is None:
                break
            left = left[copied.size_bytes :]
            await logs.make_names(copied.names_due)
            if not follower.is_current:
                return False
        if copied.flush_due:
            await logs.flush(log)
        return follower.is_current

    async def _truncate(self, follower: _Follower, offset: int, *, is_reset: bool) -> None:
        log = follower.partition.log
        state = log.state
        if offset < state.high_watermark:
            logger.warning(
                "%s Truncating %s to offset %d below high watermark %d",
                self.name,
                log.name,
                offset,
                state.high_watermark,
            )
        end_before = state.log_end_offset
        if is_reset:
            log.trimmer.reset_to(offset)
        else:
            log.trimmer.truncate_to(offset)
        follower.following = rules.at_log_end(follower.following, follower.partition.log.state)
        if state.log_end_offset != end_before:
            follower.is_unsettled = True
            await self._settle(follower)

    async def _settle(self, follower: _Follower) -> None:
        """Have the truncation written down; until then nothing is fetched."""
        if await self._ports.logs.checkpoint_truncated(follower.partition.log):
            follower.is_unsettled = False
        else:
            follower.following = rules.held_back(follower.following, self._retry_at_ms())

    def _refused(self, follower: _Follower, error: KafkaError) -> None:
        """The log did not take the records: a failed disk stops the partition, anything else is repeated."""
        log = follower.partition.log
        at_end = rules.at_log_end(follower.following, log.state)
        if log.state.offline is not None or error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            logger.error("%s %s is not followed any more: %s", self.name, log.name, error.message)
            follower.following = rules.stopped(at_end)
        else:
            # Of a full disk there is a line already, and then one when there is room.
            level = logging.DEBUG if self._ports.logs.is_full(log) else logging.ERROR
            text = "%s %s: the leader's records are refused: %s"
            logger.log(level, text, self.name, log.name, error.message)
            follower.following = rules.held_back(at_end, self._retry_at_ms())


def _wanted(follower: _Follower) -> Wanted:
    following, state = follower.following, follower.partition.log.state
    return Wanted(
        following.leader_epoch,
        following.fetch_offset,
        following.last_fetched_epoch,
        state.log_start_offset,
    )


def _level_of(error: ErrorCode, refusals: int) -> int:
    """That of a line about a partition that was refused so many times in a row: INFO once, and DEBUG where
    the news that it lacks may be on its way, or where the fetch goes on at another offset.
    """
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return logging.DEBUG
    return logging.INFO if refusals == (2 if error in NEWS_ON_ITS_WAY else 1) else logging.DEBUG
