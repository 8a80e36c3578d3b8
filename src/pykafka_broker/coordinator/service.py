"""The group coordinator as the broker's API handlers see it: one method per API, over one shard per
partition of `__consumer_offsets` (`shards.py`).

Before the topic exists nobody is a group's coordinator: NOT_COORDINATOR, except that no groups can be listed
without an error. A heartbeat during the load is answered well: the session starts anew when the load is done.

Nothing here raises for what a client did: errors are `ErrorCode`s in the results. The log is reached through
`append`; the owner says with `on_high_watermark` what is committed.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pykafka_broker.coordinator.batches import Append, batches_of
from pykafka_broker.coordinator.group import events
from pykafka_broker.coordinator.group.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.consumer.regexes import matching_topics
from pykafka_broker.coordinator.group.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.group.events import (
    CommitResult,
    ConsumerGroupHeartbeatResult,
    DeleteOffsetsResult,
    DescribedConsumerGroup,
    DescribedGroup,
    Event,
    FetchResult,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    SyncResult,
    TopicCommit,
    TopicPartitions,
)
from pykafka_broker.coordinator.group.loading import Loader
from pykafka_broker.coordinator.group.record import Record, encode_record
from pykafka_broker.coordinator.group.state import Groups
from pykafka_broker.coordinator.group.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.coordinator.group.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.coordinator.group.transitions import transition
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.shard import Scheduler, Shard
from pykafka_broker.coordinator.shards import Shards, as_answered
from pykafka_broker.protocol.compile import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.step import Step

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

Result = TypeVar("Result")
GroupShard = Shard[Groups, Event]


class GroupOffsets(NamedTuple):
    """One group of an OffsetFetch request; `topics` None asks for all."""

    group_id: str
    topics: tuple[TopicPartitions, ...] | None
    member_id: str | None = None
    member_epoch: int = -1


class GroupService:
    """Routes each request to the shard of its group.

    `new_uuid` makes the text of a random UUID. `run_blocking` runs a function where it does not hold up the
    event loop.
    """

    def __init__(
        self,
        *,
        config: GroupCoordinatorConfig,
        append: Append,
        scheduler: Scheduler,
        new_uuid: Callable[[], str],
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
    ) -> None:
        #: May be replaced at any time; holds for the next event.
        self.config = config
        self._append_batch = append
        self._scheduler = scheduler
        self._new_uuid = new_uuid
        self._run_blocking = run_blocking or _run_at_once
        self._topics: TopicDirectory = NO_TOPICS
        self._jobs: set[asyncio.Task[None]] = set()
        self._shards: Shards[Groups, Event] = Shards(new_loader=Loader, new_shard=self._new_shard)

    # ---- partitions ----

    def set_partition_count(self, count: int) -> None:
        """Say how many partitions `__consumer_offsets` has; 0 while there is no such topic."""
        self._shards.set_partition_count(count)

    def partition_for(self, group_id: str) -> int:
        """The partition a group belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        return self._shards.partition_for(group_id)

    async def load(
        self,
        partition: int,
        batches: Iterable[Buffer] | AsyncIterator[Buffer],
        *,
        high_watermark: int | None = None,
    ) -> None:
        """Serve a partition from now on, after reading its log; see `Shards.load`."""
        await self._shards.load(partition, batches, high_watermark=high_watermark)

    def unload(self, partition: int) -> None:
        """Stop serving a partition: everybody who waits is told to look for the coordinator again."""
        self._shards.unload(partition)

    def close(self) -> None:
        """Stop serving all partitions."""
        self._shards.close()
        for job in self._jobs:
            job.cancel()

    @property
    def loaded_partitions(self) -> frozenset[int]:
        """The partitions that are served."""
        return self._shards.loaded_partitions

    def on_high_watermark(self, partition: int, offset: int) -> None:
        """Everything below `offset` of a partition is committed."""
        self._shards.on_high_watermark(partition, offset)

    def forget_topics(self, topics: Iterable[tuple[str, bytes]]) -> None:
        """Topics, given as (name, topic id), are gone, and so are the offsets committed to them."""
        deleted = tuple(topics)
        self._shards.for_each(lambda shard: self._forget_topics(shard, deleted))

    def set_topics(self, topics: TopicDirectory, changed: frozenset[str], *, has_new_topics: bool) -> None:
        """The cluster's topics have changed, those named `changed` at least."""
        self._topics = topics
        event = events.TopicsChanged(topics, changed, has_new_topics)
        self._shards.for_each(lambda shard: shard.tell(event))

    def _start(self, partition: int, work: object) -> None:
        assert isinstance(work, ResolveRegexes), work
        job = asyncio.get_running_loop().create_task(self._resolve(partition, work))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _resolve(self, partition: int, work: ResolveRegexes) -> None:
        """Match a group's regular expressions against all topics, and tell its shard, if it is still here."""
        topics = self._topics
        names = list(topics.names())
        try:
            resolved = await self._run_blocking(lambda: matching_topics(work.regexes, names))
        except Exception:
            logger.exception("The regular expressions of group %s could not be resolved", work.group_id)
            resolved = None
        event = events.RegexesResolved(
            self._scheduler.now_ms(), work.group_id, work.started_ms, topics.version, resolved
        )
        try:
            self._shards.shard_of(partition).tell(event)
        except KafkaError as error:
            # The partition has moved, or cannot be written: a later heartbeat will ask again.
            logger.warning("The topics of group %s could not be stored: %s", work.group_id, error)

    def _forget_topics(self, shard: GroupShard, topics: Sequence[tuple[str, bytes]]) -> None:
        try:
            shard.tell(events.TopicsDeleted(tuple(topics)))
        except KafkaError:
            # Not worth failing a metadata update for: unread offsets expire, and a topic id tells old from
            # new.
            return

    def _new_shard(self, partition: int, state: Groups, written: int, committed: int) -> GroupShard:
        shard: GroupShard = Shard(
            state,
            transition=self._transition,
            timer_event=_timer_event,
            append=lambda records: self._append(partition, records),
            scheduler=self._scheduler,
            written=written,
            committed=committed,
            start=lambda work: self._start(partition, work),
        )
        shard.tell(events.TopicsChanged(self._topics, frozenset(), False))
        shard.tell(events.Loaded(self._scheduler.now_ms()))
        return shard

    def _transition(self, state: Groups, event: Event) -> Step[Groups]:
        group_id = _group_of(event)
        if group_id is None:
            return transition(state, event, self.config)
        before = state.classic(group_id)
        step = transition(state, event, self.config)
        after = step.state.classic(group_id)
        if after is not None and (before is None or after.phase is not before.phase):
            _log_phase(after, event)
        return step

    def _append(self, partition: int, records: tuple[object, ...]) -> int:
        now_ms = self._scheduler.now_ms()
        codec = Codec(self.config.offsets_topic_compression_codec)
        if isinstance(records[0], (TransactionalRecord, TransactionEnd)):
            return self._append_of_transaction(partition, records, now_ms, codec)
        encoded = [(now_ms, *encode_record(record), ()) for record in records if isinstance(record, Record)]
        end_offset = 0
        for batch in batches_of(encoded):
            end_offset = self._append_batch(partition, build_batch(batch, codec=codec))
        return end_offset

    def _append_of_transaction(
        self, partition: int, records: tuple[object, ...], now_ms: int, codec: Codec
    ) -> int:
        """Append offsets of one transaction as its producer's batch, or its marker."""
        first = records[0]
        if isinstance(first, TransactionEnd):
            marker = first.marker
            batch = build_marker_batch(
                EndTransactionMarker(marker.commit, marker.coordinator_epoch),
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                timestamp_ms=now_ms,
            )
            return self._append_batch(partition, batch, transaction_version=marker.transaction_version)
        assert isinstance(first, TransactionalRecord), first
        batch = build_batch(
            [
                (now_ms, *encode_record(entry.record), ())
                for entry in records
                if isinstance(entry, TransactionalRecord)
            ],
            codec=codec,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            transactional=True,
        )
        return self._append_batch(partition, batch, guard=first.guard)

    async def _ask(self, group_id: str, event_with: Callable[[int], Event]) -> Any:
        """Let the group's shard answer.

        Raises:
            KafkaError: with the code a client is to see.

        """
        return await self._shards.ask(group_id, event_with)

    # ---- membership ----

    async def join(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        client_id: str | None,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocol_type: str,
        protocols: Iterable[tuple[str, bytes]],
        group_instance_id: str | None = None,
    ) -> JoinResult:
        """JoinGroup. The answer comes when the next generation begins. Version 0 has no rebalance timeout."""
        offered: dict[str, Protocol] = {}
        for name, metadata in protocols:
            offered.setdefault(name, Protocol(name, bytes(metadata)))
        try:
            result: JoinResult = await self._ask(
                group_id,
                lambda token: events.JoinGroup(
                    token=token,
                    now_ms=self._scheduler.now_ms(),
                    version=version,
                    group_id=group_id,
                    member_id=member_id,
                    client_id=client_id or "",
                    client_host=client_host,
                    uuid=self._new_uuid(),
                    session_timeout_ms=session_timeout_ms,
                    rebalance_timeout_ms=rebalance_timeout_ms if version else session_timeout_ms,
                    protocol_type=protocol_type,
                    protocols=tuple(offered.values()),
                    group_instance_id=group_instance_id,
                ),
            )
        except KafkaError as error:
            result = JoinResult(error.code, member_id)
        if version < FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL and result.protocol_name is None:
            return result._replace(protocol_name="")
        return result

    async def sync(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        generation: int,
        assignments: Iterable[tuple[str, bytes]] = (),
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> SyncResult:
        """SyncGroup. The answer comes when the leader has brought the assignment."""
        if version >= FIRST_SYNC_VERSION_WITH_PROTOCOL and None in (protocol_type, protocol_name):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        assigned = tuple((member, bytes(assignment)) for member, assignment in assignments)
        try:
            result: SyncResult = await self._ask(
                group_id,
                lambda token: events.SyncGroup(
                    token=token,
                    now_ms=self._scheduler.now_ms(),
                    group_id=group_id,
                    member_id=member_id,
                    generation=generation,
                    assignments=assigned,
                    group_instance_id=group_instance_id,
                    protocol_type=protocol_type,
                    protocol_name=protocol_name,
                ),
            )
        except KafkaError as error:
            return SyncResult(error.code)
        return result

    async def heartbeat(
        self, *, group_id: str, member_id: str, generation: int, group_instance_id: str | None = None
    ) -> ErrorCode:
        """Heartbeat."""
        now_ms = self._scheduler.now_ms()
        try:
            error: ErrorCode = await self._ask(
                group_id,
                lambda token: events.Heartbeat(
                    token, now_ms, group_id, member_id, generation, group_instance_id
                ),
            )
        except KafkaError as failure:
            if failure.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE
            return failure.code
        return error

    async def leave(self, *, group_id: str, members: Iterable[tuple[str, str | None]]) -> LeaveResult:
        """LeaveGroup, for members given as (member id, group instance id)."""
        leaving = tuple(LeavingMember(*member) for member in members)
        try:
            result: LeaveResult = await self._ask(
                group_id,
                lambda token: events.LeaveGroup(token, self._scheduler.now_ms(), group_id, leaving),
            )
        except KafkaError as error:
            return LeaveResult(error.code)
        return result

    async def consumer_heartbeat(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        member_epoch: int,
        client_id: str | None,
        client_host: str,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: Iterable[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        owned: Iterable[tuple[bytes, Iterable[int]]] | None = None,
    ) -> ConsumerGroupHeartbeatResult:
        """ConsumerGroupHeartbeat."""
        names = None if subscribed_topic_names is None else tuple(subscribed_topic_names)
        partitions = None if owned is None else tuple((topic, tuple(each)) for topic, each in owned)
        try:
            result: ConsumerGroupHeartbeatResult = await self._ask(
                group_id,
                lambda token: events.ConsumerGroupHeartbeat(
                    token=token,
                    now_ms=self._scheduler.now_ms(),
                    version=version,
                    group_id=group_id,
                    member_id=member_id,
                    member_epoch=member_epoch,
                    client_id=client_id or "",
                    client_host=client_host,
                    uuid=_in_base64(self._new_uuid()),
                    instance_id=instance_id,
                    rack_id=rack_id,
                    rebalance_timeout_ms=rebalance_timeout_ms,
                    subscribed_topic_names=names,
                    subscribed_topic_regex=subscribed_topic_regex,
                    server_assignor=server_assignor,
                    owned=partitions,
                ),
            )
        except KafkaError as error:
            return ConsumerGroupHeartbeatResult(error.code, error.message)
        return result

    # ---- offsets ----

    async def commit_offsets(
        self,
        *,
        version: int,
        group_id: str,
        topics: tuple[TopicCommit, ...],
        member_id: str = "",
        generation: int = -1,
        group_instance_id: str | None = None,
        retention_ms: int = -1,
    ) -> CommitResult:
        """OffsetCommit."""
        try:
            result: CommitResult = await self._ask(
                group_id,
                lambda token: events.CommitOffsets(
                    token=token,
                    now_ms=self._scheduler.now_ms(),
                    version=version,
                    group_id=group_id,
                    topics=topics,
                    member_id=member_id,
                    generation=generation,
                    group_instance_id=group_instance_id,
                    retention_ms=retention_ms,
                ),
            )
        except KafkaError as error:
            return _all_refused(topics, error.code)
        return result

    async def commit_transactional_offsets(
        self,
        *,
        group_id: str,
        topics: tuple[TopicCommit, ...],
        producer_id: int,
        producer_epoch: int,
        guard: int,
        member_id: str = "",
        generation: int = -1,
        group_instance_id: str | None = None,
    ) -> CommitResult:
        """TxnOffsetCommit, once the transaction coordinator has given its leave."""
        try:
            result: CommitResult = await self._ask(
                group_id,
                lambda token: events.CommitTransactionalOffsets(
                    token=token,
                    now_ms=self._scheduler.now_ms(),
                    group_id=group_id,
                    topics=topics,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    guard=guard,
                    member_id=member_id,
                    generation=generation,
                    group_instance_id=group_instance_id,
                ),
            )
        except KafkaError as error:
            return _all_refused(topics, error.code)
        return result

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        """Write a transaction's marker into a partition of `__consumer_offsets`."""
        try:
            error: ErrorCode = await self._shards.shard_of(partition).ask(
                lambda token: events.EndTransaction(token, marker)
            )
        except KafkaError as failure:
            # A transaction coordinator knows partitions and their leaders, and no other coordinators.
            if failure.code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return failure.code
        return error

    async def fetch_offsets(
        self, groups: Iterable[GroupOffsets], *, require_stable: bool = False
    ) -> list[FetchResult]:
        """OffsetFetch: one result per group, in the order asked."""
        return [await self._fetch_offsets(group, require_stable) for group in groups]

    async def _fetch_offsets(self, group: GroupOffsets, require_stable: bool) -> FetchResult:
        try:
            result: FetchResult = await self._ask(
                group.group_id,
                lambda token: events.FetchOffsets(
                    token,
                    group.group_id,
                    group.topics,
                    require_stable,
                    group.member_id,
                    group.member_epoch,
                ),
            )
        except KafkaError as error:
            # Consumers before 3.9 do not know what to do with COORDINATOR_NOT_AVAILABLE here.
            waits = error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            return FetchResult(ErrorCode.NOT_COORDINATOR if waits else error.code)
        return result

    async def delete_offsets(
        self, *, group_id: str, topics: tuple[TopicPartitions, ...]
    ) -> DeleteOffsetsResult:
        """OffsetDelete."""
        try:
            result: DeleteOffsetsResult = await self._ask(
                group_id, lambda token: events.DeleteOffsets(token, group_id, topics)
            )
        except KafkaError as error:
            return DeleteOffsetsResult(error.code)
        return result

    # ---- administration ----

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> tuple[ErrorCode, list[ListedGroup]]:
        """ListGroups: the groups coordinated here. While a partition loads, the list would not be true."""
        wanted_states, wanted_types = tuple(states), tuple(types)
        listed: list[ListedGroup] = []
        try:
            shards = self._shards.all_loaded()
        except KafkaError as error:
            return error.code, []
        for shard in shards:
            try:
                listed += await shard.ask(lambda token: events.ListGroups(token, wanted_states, wanted_types))
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    return as_answered(error.code), []
        return ErrorCode.NONE, listed

    async def describe_groups(self, group_ids: Iterable[str], *, version: int) -> list[DescribedGroup]:
        """DescribeGroups: classic groups, in the order asked."""
        return [await self._describe_group(group_id, version) for group_id in group_ids]

    async def _describe_group(self, group_id: str, version: int) -> DescribedGroup:
        try:
            described: DescribedGroup = await self._ask(
                group_id, lambda token: events.DescribeGroup(token, version, group_id)
            )
        except KafkaError as error:
            return DescribedGroup(error.code, group_id)
        return described

    async def describe_consumer_groups(self, group_ids: Iterable[str]) -> list[DescribedConsumerGroup]:
        """ConsumerGroupDescribe: consumer groups, in the order asked."""
        return [await self._describe_consumer_group(group_id) for group_id in group_ids]

    async def _describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        if not group_id:
            return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID, group_id)
        try:
            described: DescribedConsumerGroup = await self._ask(
                group_id, lambda token: events.DescribeConsumerGroup(token, group_id)
            )
        except KafkaError as error:
            return DescribedConsumerGroup(error.code, group_id, error.message)
        return described

    async def delete_groups(self, group_ids: Iterable[str]) -> list[tuple[str, ErrorCode]]:
        """DeleteGroups: (group id, error) for each different group."""
        return [(group_id, await self._delete_group(group_id)) for group_id in dict.fromkeys(group_ids)]

    async def _delete_group(self, group_id: str) -> ErrorCode:
        try:
            error: ErrorCode = await self._ask(group_id, lambda token: events.DeleteGroup(token, group_id))
        except KafkaError as failure:
            return failure.code
        return error


FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL = 7
FIRST_SYNC_VERSION_WITH_PROTOCOL = 5


def _group_of(event: Event) -> str | None:
    """The group whose membership `event` may change."""
    match event:
        case events.Heartbeat() | events.CommitOffsets() | events.FetchOffsets():
            return None
        case events.ConsumerGroupHeartbeat():
            return event.group_id
        case events.JoinGroup() | events.SyncGroup() | events.LeaveGroup():
            return event.group_id
        case events.TimerFired(key=(_, str(group_id), *_)):
            return group_id
        case _:
            return None


def _log_phase(group: ClassicGroup, event: Event) -> None:
    cause = f"timer {event.key}" if isinstance(event, events.TimerFired) else type(event).__name__
    match group.phase:
        case Phase.PREPARING_REBALANCE:
            logger.info(
                "Preparing to rebalance group %s with old generation %d (%s).",
                group.group_id,
                group.generation,
                cause,
            )
        case Phase.COMPLETING_REBALANCE:
            logger.info(
                "Stabilized group %s generation %d with %d members.",
                group.group_id,
                group.generation,
                len(group.members),
            )
        case Phase.STABLE:
            logger.info("Group %s generation %d has its assignment.", group.group_id, group.generation)
        case Phase.EMPTY | Phase.DEAD:
            logger.info("Group %s with generation %d is now empty.", group.group_id, group.generation)


def _in_base64(uuid: str) -> str:
    """A UUID as Kafka writes its own."""
    digits = bytes.fromhex(uuid.replace("-", ""))
    return base64.urlsafe_b64encode(digits).decode().rstrip("=")


async def _run_at_once(function: Callable[[], Any]) -> Any:
    return function()


def _timer_event(key: Hashable, now_ms: int) -> Event:
    return events.TimerFired(key, now_ms)


def _all_refused(topics: tuple[TopicCommit, ...], code: ErrorCode) -> CommitResult:
    """The answer to a commit that did not reach its group."""
    return tuple(
        (topic.topic, topic.topic_id, tuple((commit.partition, code) for commit in topic.partitions))
        for topic in topics
    )
