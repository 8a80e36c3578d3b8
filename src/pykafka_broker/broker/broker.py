"""A broker: the composition root, the one place that builds everything and knows in which order.

    async with Broker(config) as broker:
        ...  # broker.bootstrap_servers

    with Broker(config) as broker:  # the same in a thread of its own
        ...

Many brokers can run in one process and event loop; nothing here is global. The clock and the file layer are
injected.

Start: lock the log directories, format new ones (once the addresses to listen on are ours), read the
metadata log and take the lead of it, open the partition logs, listen, register and unfence the broker, load
the groups, accept connections. Whoever connects finds a broker that answers everything. Stop, in reverse:
parked requests are answered, connections closed, logs synced and marked as cleanly closed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pykafka_broker.apis.fetch_sessions import FetchSessionCache
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL
from pykafka_broker.apis.ports.fetching import Fetching
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.broker.cold_reads import ColdReads
from pykafka_broker.broker.descriptor_care import DescriptorCare
from pykafka_broker.broker.failure import Failure
from pykafka_broker.broker.lifecycle import BrokerLifecycle
from pykafka_broker.broker.node_ports import NodeMetadata, TopicsOnDemand
from pykafka_broker.broker.periodic_work import PeriodicWork
from pykafka_broker.broker.producer_ids import ProducerIds
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.settings import (
    cleaner_settings,
    connection_limits,
    intervals,
    listener_limits,
    scrub_settings,
)
from pykafka_broker.broker.start_reserve import StartReserve
from pykafka_broker.broker.storage import (
    UNREADABLE_METADATA,
    local_voter,
    open_metadata_log,
    prepare_directories,
    unusable_metadata,
)
from pykafka_broker.broker.threads import Threads, run_in_own_thread
from pykafka_broker.cluster.features import KRAFT_VERSION_LEVEL
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.config import BrokerConfig, DynamicConfig, log_config_for
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.config.unheeded import UnheededConfigs, name_static
from pykafka_broker.controller.controller import Controller
from pykafka_broker.coordination.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordination.offsets_topic import OffsetsTopic
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.coordination.transaction_markers import TransactionMarkers
from pykafka_broker.coordination.transactions_topic import TransactionsTopic
from pykafka_broker.log.check.scrubber import ScrubWorker
from pykafka_broker.log.cleaner.cleaner import Worker
from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem, OsFileSystem
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.recovery.open_directories import UNKNOWN_TOPIC_ID
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.network.host_names import limits_by_address
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.memory import RequestMemory
from pykafka_broker.network.network import Network
from pykafka_broker.network.purgatory import WaitingRoom
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import is_formatted, random_uuid
from pykafka_broker.replication.log_dir_moves import LogDirMoves
from pykafka_broker.replication.partition import Partition, PartitionPorts
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.system.event_loop import raise_open_file_limit

if TYPE_CHECKING:
    from pykafka_broker.broker.broker_thread import BrokerThread
    from pykafka_broker.coordination.groups import GroupService
    from pykafka_broker.coordination.transactions import TransactionService

logger = logging.getLogger("kafka.server.BrokerServer")

Result = TypeVar("Result")
Attribute = TypeVar("Attribute")

#: How often periodic work looks whether it is due.
TICK_MS = 1_000
#: How long a stop waits for requests that are being served.
STOP_GRACE_MS = 5_000


class SetByStart(Generic[Attribute]):
    """An attribute that a broker has once `start` has set it; until then reading it says so.

    It has no `__set__`, so what is set stands in the instance and is read at no cost.
    """

    def __get__(self, broker: object, owner: type) -> Attribute:
        raise RuntimeError(
            "this broker has not been started: `async with broker`, `with broker` and "
            "`await broker.start()` start it"
        )


class Broker:
    """One Kafka broker with its controller; the ports that API handlers see."""

    logs = SetByStart["LogManager"]()
    controller = SetByStart["Controller"]()
    kraft_version = SetByStart[int]()
    listeners = SetByStart["Listeners"]()
    groups: GroupService
    transactions: TransactionService
    _thread: SetByStart[BrokerThread] = SetByStart()
    _failure = SetByStart["Failure"]()
    _replicas = SetByStart["ReplicaManager"]()
    _moves = SetByStart["LogDirMoves"]()
    _producer_ids = SetByStart["ProducerIds"]()
    _lifecycle = SetByStart["BrokerLifecycle"]()
    _served_listeners = SetByStart["ServedListeners"]()
    _descriptor_care = SetByStart["DescriptorCare"]()

    def __init__(
        self, config: BrokerConfig, *, clock: Clock | None = None, files: FileSystem | None = None
    ) -> None:
        if not isinstance(config, BrokerConfig):
            raise TypeError(f"Broker takes what load_config() returns, not {type(config).__name__}")
        self.node_id = config.node_id
        self.dynamic_config = DynamicConfig(config)
        self.dynamic_config.subscribe(self._reconfigure)
        self._unheeded = UnheededConfigs([*config.unheeded, *config.unknown])
        self.clock: Clock = SystemClock() if clock is None else clock
        self._fetching = Fetching(
            FetchSessionCache(
                lambda: random.randrange(1, 2**31), config["max.incremental.fetch.session.cache.slots"]
            ),
            config["fetch.max.bytes"],
        )
        self._files: FileSystem = OsFileSystem() if files is None else files
        self._timers = WallTimers(self.clock)
        self._threads = Threads(self.node_id)
        self._waiting = WaitingRoom(self.clock)
        self._creation = TopicCreation(
            self._create, lambda: self.config, lambda: self.image, self.clock.monotonic_ms
        )
        self._offsets = OffsetsTopic(
            config,
            self._creation,
            self._timers,
            new_uuid=_new_uuid,
            run_blocking=self._threads.run_blocking,
            read_cold=self.read_cold,
        )
        self.groups = self._offsets.groups
        self._markers = TransactionMarkers(
            self._offsets,
            led=self.partition,
            why_not_led=self.partition_error,
            image=lambda: self.image,
            now_ms=self.now_ms,
            make_names=lambda due: self.logs.make_names(due),
        )
        self._transactions = TransactionsTopic(
            config,
            self._creation,
            self._timers,
            allocate_producer_id=self.allocate_producer_id,
            markers=self._markers,
            read_cold=self.read_cold,
        )
        self.transactions = self._transactions.transactions
        self._coordinator_topics: dict[str, CoordinatorTopic] = {
            topic.name: topic for topic in (self._offsets, self._transactions)
        }
        self._broker_epoch = -1
        self._descriptors = DescriptorReserve()
        self._cold_reads = ColdReads(self._threads.read, self.clock)
        self._periodic_work = PeriodicWork(self.clock, TICK_MS, self._work_on_logs)
        self._is_started = False
        #: How to undo what the start has done so far.
        self._undo = AsyncExitStack()
        self._stopped: asyncio.Task[None] | None = None

    # -- what others see -------------------------------------------------------------------------------

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self.dynamic_config.current

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self.controller.image

    @property
    def bootstrap_servers(self) -> str:
        """Where clients of the first listener connect: `host:port`.

        It remains after a stop, so that another broker can be started at the same address.
        """
        return self._served_listeners.bootstrap_servers

    async def failed(self) -> None:
        """Return never; raise when the broker cannot go on: metadata, or all data, cannot be written."""
        await self._failure.wait()

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> Broker:
        from pykafka_broker.broker.broker_thread import BrokerThread  # nothing that a broker of its own needs

        thread = BrokerThread(self, f"broker-{self.node_id}-loop")
        thread.start()
        # Only now: a second start is refused, and then the thread that serves is still the one to stop.
        self._thread = thread
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop()

    # -- life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve; when this returns, clients find a broker that answers everything.

        A broker starts once. A start that fails leaves nothing behind: no lock, no socket, no thread.

        Raises:
            LogDirError, StorageFormatError: the data directories cannot be used; the text says what to do.
            OSError: an address cannot be listened on.
        """
        if self._is_started or self._stopped is not None:
            raise RuntimeError("a broker starts once: make another one")
        self._is_started = True
        name_static(self.config)
        self._failure = Failure()
        self._undo.callback(self._threads.shutdown)
        try:
            await self._start(self._undo)
        except BaseException as error:
            await self.stop()
            if isinstance(error, KafkaError):
                self._failure.raise_if_happened()  # what the disk said, rather than what came of it
            raise

    async def _start(self, undo: AsyncExitStack) -> None:
        """Build everything, and note beside each piece how a stop, or a start that fails later, undoes it."""
        config = self.config
        self.logs = LogManager(
            self._files,
            list(config.log_dirs),
            run_blocking=self._threads.run_blocking,
            run_on_disk=self._threads.upkeep.run_in,
            run_awaited=self._threads.sync.run_in,
            now_ms=self.now_ms,
            config_for=self._log_config_of_topic,
            intervals=intervals(config),
            recovery_threads=config["num.recovery.threads.per.data.dir"],
            on_dir_failure=self._log_dir_failed,
            metadata_dir=config.metadata_log_dir,
            cleaner_settings=cleaner_settings(config),
            new_cleaning_worker=self._worker(_cleaning_process),
            run_cleaning=run_in_own_thread,
            scrub_settings=scrub_settings(config),
            new_scrub_worker=self._worker(_scrub_process),
        )
        await self._reserve_addresses(undo)
        undo.callback(self.logs.dirs.unlock)
        cluster_id, formatted = prepare_directories(self._files, self.logs, config, now_ms=self.now_ms())
        if formatted is not None:
            for directory in formatted.directory_ids:
                logger.info("Formatted %s for cluster %s", directory, cluster_id)
        self._reserve = StartReserve(self._files, config.metadata_log_dir)
        self._reserve.give_if_needed()
        try:
            await self._start_controller(cluster_id, undo)
        except UNREADABLE_METADATA as error:
            raise unusable_metadata(config, error) from error
        self._apply_dynamic_config(self.image)
        await self.logs.open_all()
        self._replicas = ReplicaManager(
            self.logs,
            lambda overrides: log_config_for(overrides, self.config),
            PartitionPorts(self.node_id, self._threads.sync, self.clock),
            _CoordinatorRoles(self._coordinator_topics),
        )
        await self._served_listeners.listen()
        self.dynamic_config.subscribe(self._reconfigure_serving)
        self._lifecycle = BrokerLifecycle(self.controller, self.logs.dirs, self._replicas)
        self._producer_ids = ProducerIds(self._lifecycle.allocate_producer_ids)
        await self._lifecycle.register(
            self._served_listeners.registered(),
            rack=config.get("broker.rack"),
            previous_broker_epoch=self.logs.previous_broker_epoch,
        )
        self._broker_epoch = self._lifecycle.broker_epoch
        undo.push_async_callback(self._lifecycle.shut_down)
        self.logs.set_strays_aside(self._is_placed_here)
        for topic in self._coordinator_topics.values():
            undo.push_async_callback(topic.close)
        if (preparation := self._replicas.prepare(self.image)) is not None:
            await preparation
        self._image_published(ClusterImage(), self.image)
        self.controller.prepare_with(self._replicas.prepare)
        self.controller.subscribe(self._image_published)
        self._moves = self._log_dir_moves()
        undo.push_async_callback(self._moves.stop)
        self._moves.resume()
        await self._lifecycle.unfence(self.config.cordoned_log_dirs)
        await self.run_blocking(self._reserve.take_back)
        self._lifecycle.report_places()
        for topic in self._coordinator_topics.values():
            await topic.loaded()
        undo.push_async_callback(self._hang_up)
        self.listeners.start(self._ports())
        undo.push_async_callback(self._periodic_work.stop)
        self._periodic_work.start()

    def _ports(self) -> NodePorts:
        """What handlers may ask of this node."""
        return NodePorts(
            clock=self.clock,
            configs=self.dynamic_config,
            metadata=NodeMetadata(self.node_id, self.controller, self.listeners, self.kraft_version),
            controller=self.controller,
            topic_creation=TopicsOnDemand(self._creation, self._offsets, self._transactions),
            partitions=self._replicas,
            logs=self.logs,
            log_dir_moves=self._moves,
            groups=self.groups,
            transactions=self.transactions,
            markers=self._markers,
            producer_ids=self._producer_ids,
            fetching=self._fetching,
            purgatory=self._waiting,
            cold_reads=self._cold_reads,
            threads=self._threads,
            authorizer=ALLOW_ALL,
        )

    def _log_dir_moves(self) -> LogDirMoves:
        config = self.config
        return LogDirMoves(
            self.logs,
            self._replicas,
            self._lifecycle,
            self.clock,
            threads=config["num.replica.alter.log.dirs.threads"] or len(config.log_dirs),
            bytes_per_second=lambda: self.config["replica.alter.log.dirs.io.max.bytes.per.second"],
        )

    async def _start_controller(self, cluster_id: str, undo: AsyncExitStack) -> None:
        config = self.config
        storage = open_metadata_log(
            self._files,
            config,
            now_ms=self.now_ms(),
            run_later=self._threads.run_in_background,
            on_write_failed=partial(self.logs.full_disks.write_failed, self.logs.dirs.metadata),
        )
        self._metadata_log = storage.log
        undo.push_async_callback(self._close_logs)
        self.controller = Controller(
            storage,
            local_voter(config, self.logs),
            ControllerRules(
                node_id=self.node_id,
                cluster_id=cluster_id,
                configs=_NodeConfigRules(self.dynamic_config),
                default_partitions=config["num.partitions"],
                default_replication_factor=config["default.replication.factor"],
                session_timeout_ms=config["broker.session.timeout.ms"],
                voters=(self.node_id,),
            ),
            files=self._files,
            metadata_directory=config.metadata_log_dir,
            scheduler=self._timers,
            run_blocking=self._threads.run_blocking,
            on_failure=self._failure.set,
            bytes_between_snapshots=config["metadata.log.max.record.bytes.between.snapshots"],
            snapshot_interval_ms=config["metadata.log.max.snapshot.interval.ms"],
        )
        undo.push_async_callback(self.controller.close)
        await self.controller.start()
        self.kraft_version = 0 if storage.static_voters else KRAFT_VERSION_LEVEL

    async def _reserve_addresses(self, undo: AsyncExitStack) -> None:
        """Make sure of the addresses before directories are formatted: a start that fails leaves none."""
        config = self.config
        network = Network(
            self.clock,
            connection_limits(config),
            RequestMemory(config["queued.max.request.bytes"]),
        )
        # A host that is unknown keeps a broker from starting only where the process was given it.
        by_address = await limits_by_address(config.connections_per_ip_overrides)
        open_file_limit = raise_open_file_limit()
        limits = listener_limits(config, by_address)
        self.listeners = Listeners(network, limits, open_file_limit, self._descriptors)
        self._descriptor_care = DescriptorCare(
            self._descriptors, self.logs, self.clock, on_short=self.listeners.complain_of_descriptors
        )
        if open_file_limit is not None and isinstance(self._files, OsFileSystem):
            undo.callback(self._descriptor_care.end)
            self._descriptor_care.begin(self._files, open_file_limit)
        undo.callback(self.listeners.stop_accepting)
        self._served_listeners = ServedListeners(self.listeners, lambda: self.config, self._threads)
        if not is_formatted(self._files, config.metadata_log_dir):
            self._served_listeners.reserve_addresses()

    def _worker(self, new: Callable[[], Result]) -> Callable[[], Result] | None:
        """What makes a process of its own for work on real files; to load its code takes a descriptor."""
        return partial(self._descriptors.use, new) if isinstance(self._files, OsFileSystem) else None

    async def stop(self) -> None:
        """Answer what is parked, close the connections, sync the logs and mark them as cleanly closed.

        Stopping again is harmless; who does so meanwhile waits for the same end.
        """
        if self._stopped is None:
            self._stopped = asyncio.get_running_loop().create_task(self._undo.aclose())
        await asyncio.shield(self._stopped)

    async def _hang_up(self) -> None:
        """Let no more clients in, answer those who wait, and close their connections."""
        self.listeners.stop_accepting()
        self._waiting.close()
        for topic in self._coordinator_topics.values():
            topic.coordinator.close()
        await self.listeners.stop(STOP_GRACE_MS)

    async def _close_logs(self) -> None:
        """The metadata log first, for the marker that the other logs leave speaks for it too."""
        clean = await self.run_blocking(self._metadata_log.close)
        await self.logs.close(self._broker_epoch, clean=clean)

    async def _work_on_logs(self) -> None:
        await self._replicas.create_missing()
        if self._reserve.is_short:
            await self.run_blocking(self._reserve.take_back)
        await self.logs.tick(self.now_ms())

    # -- metadata --------------------------------------------------------------------------------------

    def _image_published(self, old: ClusterImage, new: ClusterImage) -> None:
        self._apply_dynamic_config(new)
        self._replicas.apply(new)
        self._creation.on_image(old, new)
        for topic in self._coordinator_topics.values():
            topic.on_image(old, new)
        if new.topics is not old.topics and old.offset >= 0:
            self._lifecycle.report_places()

    def _apply_dynamic_config(self, image: ClusterImage) -> None:
        self.dynamic_config.update(
            image.config(ResourceType.BROKER, ""), image.config(ResourceType.BROKER, str(self.node_id))
        )
        self._unheeded.look(image.configs)

    def _reconfigure(self, _old: BrokerConfig, new: BrokerConfig) -> None:
        """Let everybody who acts on configuration values have the new ones."""
        self._fetching.max_bytes = new["fetch.max.bytes"]
        self._fetching.sessions.max_entries = new["max.incremental.fetch.session.cache.slots"]
        for topic in self._coordinator_topics.values():
            topic.reconfigure(new)
        self.logs.intervals = intervals(new)
        self.logs.cleaner.settings = cleaner_settings(new)
        self.logs.scrubber.settings = scrub_settings(new)

    def _reconfigure_serving(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """The same for logs and listeners, once there are any."""
        self._replicas.reconfigure()
        self._lifecycle.recordon(new.cordoned_log_dirs)
        self._served_listeners.reconfigure(old, new)

    def _log_config_of_topic(self, topic: str) -> Any:
        return log_config_for(self.image.config(ResourceType.TOPIC, topic), self.config)

    def _is_placed_here(self, log: PartitionLog) -> bool:
        """Whether the metadata knows this log; one that has lost its topic id is known by its name."""
        topic = self.image.topics.get(log.topic)
        if topic is None or log.topic_id not in (topic.topic_id, UNKNOWN_TOPIC_ID):
            return False
        registration = topic.partitions.get(log.partition)
        return registration is not None and self.node_id in registration.replicas

    def _log_dir_failed(self, log_dir: LogDir) -> None:
        """Go on with the other directories, if they hold what this node cannot do without."""
        assert log_dir.error is not None
        if log_dir is self.logs.dirs.metadata or not self.logs.dirs.online:
            self._failure.set(log_dir.error)
            return
        self._lifecycle.report_failed(log_dir)

    async def _create(self, topics: Sequence[Any]) -> Any:
        return await self.controller.create_topics(topics, timeout_ms=self.config["request.timeout.ms"])

    # -- what handlers ask for -------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def partition(self, topic: str, partition: int) -> Partition | None:
        return self._replicas.led(topic, partition)

    def partition_error(self, topic: str, partition: int) -> ErrorCode:
        return self._replicas.why_not_led(topic, partition)

    async def alter_replica_log_dir(self, topic: str, partition: int, path: str) -> ErrorCode:
        return await self._moves.alter(topic, partition, path)

    def run_blocking(self, function: Callable[[], Result]) -> Awaitable[Result]:
        return self._threads.run_blocking(function)

    def read_cold(self, log: PartitionLog, read: Callable[[], Result]) -> asyncio.Future[Result]:
        return self._cold_reads.run(log, read)

    def is_read_late(self, log: PartitionLog) -> bool:
        return self._cold_reads.is_late(log)

    async def allocate_producer_id(self) -> int:
        """The next producer id; a block of them is fetched from the controller when none is left."""
        return await self._producer_ids.next_id()


class _CoordinatorRoles:
    """Lets each coordinator know which partitions of its topic this node leads."""

    def __init__(self, topics: Mapping[str, CoordinatorTopic]) -> None:
        self._topics = topics

    def lead(self, partition: Partition) -> None:
        if (topic := self._topics.get(partition.topic)) is not None:
            topic.lead(partition)

    def resign(self, partition: Partition) -> None:
        if (topic := self._topics.get(partition.topic)) is not None:
            topic.resign(partition)


class _NodeConfigRules(TableRules):
    """The controller's rules, and those of the broker, which alone knows its static configuration."""

    def validate(self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        """Accept the complete set of values a resource is to have.

        Raises:
            KafkaError: in Kafka's words.
        """
        super().validate(resource_type, name, new, old)
        if resource_type == ResourceType.BROKER:
            validate_broker_configs(name, new, self.configs)


def _new_uuid() -> str:
    """A random UUID in the usual spelling, as it stands in member ids; `uuid` costs a start-up 1.5 ms."""
    digits = random_uuid().hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _cleaning_process() -> Worker:
    from pykafka_broker.log.cleaner.process import CleaningProcess  # a start has nothing to clean

    return CleaningProcess()


def _scrub_process() -> ScrubWorker:
    from pykafka_broker.log.check.scrub_process import ScrubProcess  # not before the first round

    return ScrubProcess()
