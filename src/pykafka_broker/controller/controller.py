"""The controller as the rest of a node sees it: ask for a change, get the answer once it is committed.

event -> core -> records appended to the metadata log -> fsynced, so committed -> image prepared for
      -> image published -> answer

`Controller` is the shell of cluster/controller.py over the Raft replica of raft/driver.py. Answers wait for
the commit (machine/shard.py parks them), and the image that an answer is about is published before the
answer goes out: whoever asks the same node next sees what was changed. What an image takes long to make true
(folders of thousands of new partitions) is done before it is published, while the node goes on with the
image it has: see `prepare_with`.

Time-outs live here, for the core has no clock: a change whose caller has no time left is not begun, and one
that takes too long is answered with REQUEST_TIMED_OUT, although it may still happen.

The broker in the same process is not watched by heartbeats: if it dies, so does its controller. Sessions of
brokers elsewhere come with the full quorum.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Optional

from pykafka_broker.cluster import events
from pykafka_broker.cluster.brokers import activate
from pykafka_broker.cluster.configs import refused_by_broker
from pykafka_broker.cluster.controller import transition
from pykafka_broker.cluster.events import (
    AlterConfigsResult,
    ConfigChange,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    DirectoryAssignment,
    FeatureUpdate,
    HeartbeatResult,
    NewConfigs,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
)
from pykafka_broker.cluster.feature_control import elr_safety_records
from pykafka_broker.cluster.features import ELR_VERSION, NODE_FEATURES, can_work_at, merely_kept
from pykafka_broker.cluster.image import (
    METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
    ClusterImage,
    CorruptMetadataError,
    Endpoint,
    FeatureRange,
)
from pykafka_broker.cluster.loader import MetadataLoader
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.cluster.state import ControllerRules, ControllerState
from pykafka_broker.cluster.topics import MAX_RECORDS_PER_OPERATION
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Answer, Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.quorum import Voter
from pykafka_broker.raft.driver import RaftDriver
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.raft.snapshots import BOOTSTRAP_CHECKPOINT, SnapshotId, decode_snapshot
from pykafka_broker.raft.storage import Loaded, RaftStorage

logger = logging.getLogger(__name__)

#: How long an answer waits for a disk that does not sync when the caller has not said how long: as long as
#: Kafka's brokers wait for their controller.
COMMIT_TIMEOUT_MS = 60_000
#: metadata.version 3.6-IV1: readers of older ones do not know what begins or ends a transaction.
METADATA_TRANSACTIONS_VERSION = 13
#: Replicas whose directories are told in one event.
MAX_ASSIGNMENTS = 2_250
#: A start reads so much in less than half a second. Each stop and start of a broker of 5,000 partitions adds
#: half of it.
SNAPSHOT_AT_STOP_BYTES = 1 << 20

Subscriber = Callable[[ClusterImage, ClusterImage], None]
Preparer = Callable[[ClusterImage], Optional[Awaitable[None]]]


class Controller:
    """Decides on metadata, and shows the newest committed image.

    `metadata_directory` is the log directory that holds `bootstrap.checkpoint`. A snapshot is written after
    every `bytes_between_snapshots` of the log, with the first change after `snapshot_interval_ms` (0:
    never), and at a stop if the next start would have to read `snapshot_at_stop_bytes` of log.
    `run_blocking` runs a job in a worker thread. `on_failure` is told when the metadata log's disk failed: a
    node without metadata must stop.
    """

    def __init__(
        self,
        storage: RaftStorage,
        local: Voter,
        rules: ControllerRules,
        *,
        files: FileSystem,
        metadata_directory: str,
        scheduler: Scheduler,
        run_blocking: Callable[[Callable[[], None]], Awaitable[None]],
        on_failure: Callable[[Exception], None],
        bytes_between_snapshots: int = 20 << 20,
        snapshot_interval_ms: int = 3_600_000,
        snapshot_at_stop_bytes: int = SNAPSHOT_AT_STOP_BYTES,
    ) -> None:
        self._rules = rules
        self._files = files
        self._metadata_directory = metadata_directory
        self._scheduler = scheduler
        self._run_blocking = run_blocking
        self._report_failure = on_failure
        self._bytes_between_snapshots = bytes_between_snapshots
        self._snapshot_interval_ms = snapshot_interval_ms
        self._snapshot_at_stop_bytes = snapshot_at_stop_bytes
        self._last_snapshot_ms = scheduler.now_ms()
        self._snapshot: asyncio.Task[None] | None = None
        self._driver = RaftDriver(
            storage,
            local,
            now_ms=scheduler.now_ms,
            run_blocking=run_blocking,
            on_commit=self._on_commit,
            on_failure=self._on_failure,
        )
        self._image = ClusterImage(rules.cluster_id)
        self._subscribers: list[Subscriber] = []
        self._prepare: Preparer = lambda image: None
        #: Runs while the next image is prepared for.
        self._preparing: asyncio.Task[None] | None = None
        self._committed = 0
        self._unpublished: deque[tuple[int, ClusterImage]] = deque()
        self._shard: Shard[ControllerState, events.Event] | None = None
        #: Done when this start's first records are committed; `start` waits for it.
        self._first_commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seed = random.getrandbits(63)
        self._cordoned_directories: tuple[bytes, ...] = ()

    # -- reading ---------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self._image

    @property
    def epoch(self) -> int:
        """The leader epoch of the metadata log."""
        return self._driver.epoch

    @property
    def raft(self) -> RaftDriver:
        """The replica of the metadata log; DescribeQuorum tells about it."""
        return self._driver

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(old, new)` whenever a new image is published, before the answers it makes true.

        Returns how to stop that.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def prepare_with(self, preparer: Preparer) -> None:
        """Call `preparer(new)` before an image is published; if it returns something to await, for that long.

        Meanwhile nothing newer is published, and what waits for it is not answered.
        """
        self._prepare = preparer

    # -- life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Replay the log and take the lead of it; the image is current when this returns.

        Raises:
            OtherVotersError, CorruptMetadataError: the log is not one that this node can go by.
            OSError, KafkaError: the disk failed.
        """
        loaded = self._driver.storage.load()
        loader = self._replay(loaded)
        bootstrap = () if loader.image.features else self._bootstrap_records()
        _check_features(loader.image.features or _levels(bootstrap))
        self._driver.boot(loaded)
        loader.skip_to(self._driver.storage.end_offset - 1, self._driver.epoch)
        self._append_first_records(loader, bootstrap)
        state = activate(ControllerState(loader.image, self._rules), self._scheduler.now_ms())
        self._shard = Shard(
            state,
            ShardCore(transition, lambda _key, now_ms: events.ExpireSessions(now_ms)),
            ShardPorts(self._append, self._scheduler),
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
        )
        self._unpublished.append((self._driver.storage.end_offset, state.image))
        await self._first_commit

    def _replay(self, loaded: Loaded) -> MetadataLoader:
        """A loader that has read all that the files hold."""
        loader = MetadataLoader(ClusterImage(self._rules.cluster_id))
        if loaded.snapshot is not None:
            snapshot_id, values = loaded.snapshot
            # Where each record once lay is not known any more: it was below the snapshot's end.
            last_offset = snapshot_id.end_offset - 1
            for value in values:
                loader.apply((decode_record(value),), offset=last_offset, epoch=snapshot_id.epoch)
            loader.skip_to(last_offset, snapshot_id.epoch)
        storage = self._driver.storage
        for batch in storage.read(loaded.start_offset, storage.end_offset):
            if batch.values is None:
                loader.skip_to(batch.next_offset - 1, batch.epoch)
            else:
                records = [decode_record(value) for value in batch.values]
                loader.apply(records, offset=batch.base_offset, epoch=batch.epoch)
        return loader

    async def close(self) -> None:
        """Refuse new work and return when what was appended is on disk."""
        if self._shard is not None:
            self._shard.close(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
            unread_bytes = self._driver.storage.bytes_since_snapshot
            if self._snapshot is None and unread_bytes >= self._snapshot_at_stop_bytes:
                await self._take_snapshot(self._image)
        await self._driver.close()
        if self._preparing is not None:
            await self._preparing
        if self._snapshot is not None:
            await self._snapshot

    def _bootstrap_records(self) -> tuple[object, ...]:
        """What formatting wants an empty log to begin with: feature levels, perhaps SCRAM credentials."""
        data = self._files.read_file(join(self._metadata_directory, BOOTSTRAP_CHECKPOINT))
        return tuple(decode_record(value) for value in decode_snapshot(data).values)

    def _append_first_records(self, loader: MetadataLoader, bootstrap: Sequence[object]) -> None:
        """Bring the log into a state to go on from: abort what a crash left half done, begin what is empty.

        The first records are a metadata transaction, as those of Kafka's activation are, where there are such
        transactions.
        """
        records: list[object] = []
        if loader.in_transaction:
            records.append(m.AbortTransactionRecord(reason="Controller failover"))
        if bootstrap:
            levels = _levels(bootstrap)
            first = list(bootstrap)
            if levels.get(ELR_VERSION):
                first += elr_safety_records(ControllerState(loader.image, self._rules))
            if levels.get(METADATA_VERSION, 0) >= METADATA_TRANSACTIONS_VERSION:
                first = [
                    m.BeginTransactionRecord(name="Bootstrap records"),
                    *first,
                    m.EndTransactionRecord(),
                ]
            records += first
        if records:
            base_offset = self._driver.storage.end_offset
            # None of these record types has a second version.
            self._driver.append([encode_record(record, MINIMUM_METADATA_VERSION) for record in records])
            loader.apply(records, offset=base_offset, epoch=self._driver.epoch)

    # -- commits ---------------------------------------------------------------------------------------

    def _append(self, records: tuple[object, ...]) -> int:
        assert self._shard is not None
        assert self._shard.state.next_offset == self._driver.storage.end_offset, "the log has other writers"
        metadata_version = self._shard.state.image.metadata_version
        values = [encode_record(record, metadata_version) for record in records]
        # What users ask for fits into one batch, all or nothing. A broker that comes or goes may touch more
        # partitions than that; each of these records is true by itself.
        end_offset = self._driver.append(values[:MAX_RECORDS_PER_OPERATION])
        for start in range(MAX_RECORDS_PER_OPERATION, len(values), MAX_RECORDS_PER_OPERATION):
            try:
                end_offset = self._driver.append(values[start : start + MAX_RECORDS_PER_OPERATION])
            except KafkaError as error:
                # Half of a decision is in the log: nothing that is in memory says the same.
                self._on_failure(error)
                raise
        return end_offset

    def _on_commit(self, offset: int) -> None:
        self._committed = offset
        if self._preparing is None:
            self._publish_committed()

    def _publish_committed(self) -> None:
        """Show what is committed first, then let the answers go."""
        while self._unpublished and self._unpublished[0][0] <= self._committed:
            end_offset, image = self._unpublished[0]
            preparation = self._prepare(image)
            if preparation is not None:
                self._preparing = asyncio.get_running_loop().create_task(self._publish_prepared(preparation))
                return
            self._unpublished.popleft()
            self._published(image, end_offset)
        self._answer(self._committed)

    async def _publish_prepared(self, preparation: Awaitable[None]) -> None:
        """Publish the image at the head of the queue when it has been prepared for, then what came after."""
        try:
            await preparation
        except Exception:
            logger.exception("What the metadata asks for could not be prepared in advance")
        end_offset, image = self._unpublished.popleft()
        self._preparing = None
        self._published(image, end_offset)
        self._publish_committed()

    def _published(self, image: ClusterImage, end_offset: int) -> None:
        self._publish(image)
        self._answer(end_offset)

    def _answer(self, offset: int) -> None:
        if self._shard is not None:
            self._shard.on_commit(offset)
        if not self._first_commit.done():
            self._first_commit.set_result(None)
        if self._snapshot is None and self._snapshot_is_due():
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot(self._image))

    def _snapshot_is_due(self) -> bool:
        """Whether enough has been committed since the last one, or anything in a long time."""
        if self._driver.storage.bytes_since_snapshot >= self._bytes_between_snapshots:
            return True
        age_ms = self._scheduler.now_ms() - self._last_snapshot_ms
        return 0 < self._snapshot_interval_ms <= age_ms

    def _publish(self, image: ClusterImage) -> None:
        old, self._image = self._image, image
        for subscriber in tuple(self._subscribers):
            subscriber(old, image)

    async def _take_snapshot(self, image: ClusterImage) -> None:
        """Write `image` down, so that starts need not read what led to it, and drop the log before it."""
        storage = self._driver.storage
        storage.bytes_since_snapshot = 0
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        voters = self._driver.state.log.voters
        now_ms = self._last_snapshot_ms = self._scheduler.now_ms()

        def write() -> None:
            values = [encode_record(r, image.metadata_version) for r in snapshot_records(image)]
            storage.write_snapshot(snapshot_id, values, voters, last_timestamp_ms=now_ms, now_ms=now_ms)

        try:
            await self._run_blocking(write)
            storage.trim(now_ms)
        except OSError as error:
            # Nothing is lost: the log says it all. The next one is tried after as many bytes again.
            logger.warning("A snapshot of the metadata could not be written: %s", error)
        else:
            logger.info("Wrote the metadata snapshot %s", snapshot_id.file_name)
        finally:
            self._snapshot = None

    def _on_failure(self, error: Exception) -> None:
        """Nothing more can be committed: everybody who waits is told so, and so is the node."""
        logger.error("The metadata log cannot be written: %s", error)
        if self._shard is not None:
            self._shard.close(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        if self._first_commit.done():
            self._report_failure(error)
        else:
            self._first_commit.set_exception(error)

    # -- asking ----------------------------------------------------------------------------------------

    def _submit(self, event_with: Callable[[int], events.Event]) -> Answer:
        """Decide now; the answer comes with the commit. What was decided can be built on at once."""
        shard = self._shard
        if shard is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        before = shard.state.image
        answer = shard.ask(event_with)
        if shard.state.image is not before:
            self._unpublished.append((self._driver.storage.end_offset, shard.state.image))
        return answer

    async def _ask(self, event_with: Callable[[int], events.Event], timeout_ms: int | None = None) -> Any:
        """The result of an event; KafkaError when it was refused as a whole or took longer than allowed."""
        if timeout_ms is not None and timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        answer = self._submit(event_with)
        if timeout_ms is None or isinstance(answer, Prompt):
            result = await answer
        else:
            deadline = self._scheduler.call_at(
                self._scheduler.now_ms() + timeout_ms, lambda: _time_out(answer)
            )
            try:
                result = await answer
            finally:
                deadline.cancel()
        if isinstance(result, events.EventError):
            raise KafkaError(result.error, result.message)
        return result

    # -- topics ----------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics; a topic without an id gets a random one.

        One result for each distinct name, in Kafka's order: duplicates last.
        """
        asked = tuple(
            topic if any(topic.topic_id) else topic._replace(topic_id=random_uuid()) for topic in topics
        )
        seed = self._next_seed()
        try:
            results: tuple[CreateTopicResult, ...] = await self._ask(
                lambda token: events.CreateTopics(token, asked, seed, validate_only), timeout_ms
            )
        except KafkaError as error:
            names = dict.fromkeys(topic.name for topic in asked)
            return tuple(CreateTopicResult(name, error.code, _text(error)) for name in names)
        return results

    async def delete_topics(
        self, topics: Iterable[tuple[str | None, bytes]], *, timeout_ms: int | None = None
    ) -> tuple[DeleteTopicResult, ...]:
        """Delete topics given as (name, zero id) or (None, id).

        Whether `delete.topic.enable` allows it is for the caller to know.
        """
        asked = tuple(topics)
        try:
            results: tuple[DeleteTopicResult, ...] = await self._ask(
                lambda token: events.DeleteTopics(token, asked), timeout_ms
            )
        except KafkaError as error:
            return tuple(
                DeleteTopicResult(name, topic_id, error.code, _text(error)) for name, topic_id in asked
            )
        return results

    async def create_partitions(
        self, topics: Iterable[NewPartitions], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreatePartitionsResult, ...]:
        """Add partitions to topics."""
        asked = tuple(topics)
        seed = self._next_seed()
        try:
            results: tuple[CreatePartitionsResult, ...] = await self._ask(
                lambda token: events.CreatePartitions(token, asked, seed, validate_only), timeout_ms
            )
        except KafkaError as error:
            names = dict.fromkeys(topic.name for topic in asked)
            return tuple(CreatePartitionsResult(name, error.code, _text(error)) for name in names)
        return results

    def _next_seed(self) -> int:
        """Where placement starts: elsewhere for each request."""
        self._seed += 1
        return self._seed

    # -- configs ---------------------------------------------------------------------------------------

    async def incremental_alter_configs(
        self, resources: Iterable[ConfigChange], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        """Change single keys; one result for each resource asked, in that order.

        The broker's own checks of BROKER values, and its loggers, are for the caller.
        """
        asked = tuple(resources)
        return await self._alter(
            asked, lambda token, left: events.IncrementalAlterConfigs(token, left, validate_only)
        )

    async def alter_configs(
        self, resources: Iterable[NewConfigs], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        """Replace all values; one result for each resource asked, in that order."""
        asked = tuple(resources)
        return await self._alter(asked, lambda token, left: events.AlterConfigs(token, left, validate_only))

    async def _alter(
        self, asked: tuple[Any, ...], event: Callable[[int, tuple[Any, ...]], events.Event]
    ) -> tuple[AlterConfigsResult, ...]:
        keys = [(resource.resource_type, resource.name) for resource in asked]
        refused: dict[tuple[int, str], tuple[ErrorCode, str | None]] = {}
        for resource, key in zip(asked, keys, strict=True):
            if keys.count(key) > 1:
                refused[key] = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            elif why := refused_by_broker(resource, self._rules.node_id):
                refused[key] = why
        left = tuple(r for r, key in zip(asked, keys, strict=True) if key not in refused)
        if left:
            try:
                results = await self._ask(lambda token: event(token, left))
            except KafkaError as error:
                results = [
                    AlterConfigsResult(r.resource_type, r.name, error.code, _text(error)) for r in left
                ]
            refused.update({(r.resource_type, r.name): (r.error, r.message) for r in results})
        return tuple(AlterConfigsResult(*key, *refused[key]) for key in keys)

    # -- brokers ---------------------------------------------------------------------------------------

    async def register_broker(
        self,
        *,
        listeners: Mapping[str, Endpoint],
        directories: Iterable[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
        incarnation_id: bytes | None = None,
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> int:
        """Register the broker of this process, fenced; returns its broker epoch.

        `previous_broker_epoch` is what the last clean stop left behind, -1 otherwise.
        """
        epoch: int = await self._ask(
            lambda token: events.RegisterBroker(
                token,
                self._scheduler.now_ms(),
                self._rules.node_id,
                self._rules.cluster_id,
                incarnation_id or random_uuid(),
                listeners,
                features,
                tuple(directories),
                rack,
                previous_broker_epoch,
            )
        )
        return epoch

    async def unfence_broker(self, broker_epoch: int) -> None:
        """The broker of this process is ready: let it lead."""
        await self._heartbeat(broker_epoch)

    async def shut_down_broker(self, broker_epoch: int) -> None:
        """The broker of this process stops: take it out of what it leads and fence it.

        It may stop serving when this returns.
        """
        while not (await self._heartbeat(broker_epoch, want_shutdown=True)).should_shut_down:
            pass

    async def report_failed_directories(self, broker_epoch: int, directories: Iterable[bytes]) -> None:
        """Log directories of the broker of this process have failed: their partitions have no leader now."""
        await self._heartbeat(broker_epoch, offline_directories=tuple(directories))

    def cordon(self, directories: Iterable[bytes]) -> None:
        """Directories of the broker of this process that get no new replicas; said with each heartbeat."""
        self._cordoned_directories = tuple(directories)

    async def report_cordoned_directories(self, broker_epoch: int, directories: Iterable[bytes]) -> None:
        """The same, said at once."""
        self.cordon(directories)
        await self._heartbeat(broker_epoch)

    async def assign_replicas_to_dirs(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> tuple[ErrorCode, ...]:
        """The broker of this process says which log directories hold its replicas; an outcome for each.

        As many are put into one event as Apache Kafka's brokers put into one request.
        """
        outcomes: list[ErrorCode] = []
        for start in range(0, len(assignments), MAX_ASSIGNMENTS):
            some = tuple(assignments[start : start + MAX_ASSIGNMENTS])
            outcomes += await self._ask(partial(self._assignment_event, broker_epoch, some))
        return tuple(outcomes)

    def _assignment_event(
        self, broker_epoch: int, assignments: tuple[DirectoryAssignment, ...], token: int
    ) -> events.Event:
        return events.AssignReplicasToDirs(token, self._rules.node_id, broker_epoch, assignments)

    async def _heartbeat(
        self,
        broker_epoch: int,
        *,
        want_shutdown: bool = False,
        offline_directories: tuple[bytes, ...] = (),
    ) -> HeartbeatResult:
        result: HeartbeatResult = await self._ask(
            lambda token: events.Heartbeat(
                token,
                self._scheduler.now_ms(),
                self._rules.node_id,
                broker_epoch,
                # What is appended here has been applied here by the time the answer comes.
                self._driver.storage.end_offset - 1,
                want_shutdown=want_shutdown,
                offline_directories=offline_directories,
                cordoned_directories=self._cordoned_directories,
            )
        )
        return result

    async def register_controller(
        self, listeners: Mapping[str, Endpoint], features: Mapping[str, FeatureRange] = NODE_FEATURES
    ) -> None:
        """Write down how the controller of this process is reached."""
        incarnation_id = random_uuid()
        await self._ask(
            lambda token: events.RegisterController(
                token, self._rules.node_id, incarnation_id, listeners, features
            )
        )

    async def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker; KafkaError if it is not known."""
        await self._ask(lambda token: events.UnregisterBroker(token, broker_id))

    # -- the rest --------------------------------------------------------------------------------------

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        """A block of producer ids for the broker of this process."""
        block: ProducerIdBlock = await self._ask(
            lambda token: events.AllocateProducerIds(token, self._rules.node_id, broker_epoch)
        )
        return block

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> None:
        """Change finalized feature levels; KafkaError with the reason when one of them cannot be."""
        asked = tuple(updates)
        await self._ask(lambda token: events.UpdateFeatures(token, asked, validate_only), timeout_ms)


def _levels(records: Iterable[object]) -> dict[str, int]:
    """The feature levels that records set."""
    return {r.name: r.feature_level for r in records if isinstance(r, m.FeatureLevelRecord)}


def _check_features(levels: Mapping[str, int]) -> None:
    """What another version has finalized, this one may not understand; what it merely keeps is said once."""
    for name, level in levels.items():
        known = NODE_FEATURES.get(name)
        if known is None or not can_work_at(name, level, known):
            served = "does not know it" if known is None else f"serves {known.min_level} to {known.max_level}"
            raise CorruptMetadataError(f"the cluster has {name} at level {level}, this version {served}")
    if kept := merely_kept(levels):
        logger.warning(
            "The cluster has features that this version does not serve: %s. "
            "Their levels and their records are kept as they are",
            ", ".join(f"{name} at level {level}" for name, level in sorted(kept.items())),
        )


def _time_out(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))


def _text(error: KafkaError) -> str | None:
    """What the error says beyond its code: Kafka sends no text with a bare code here."""
    return None if error.message == error.code.message else error.message
