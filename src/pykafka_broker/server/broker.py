"""A broker: the composition root, the one place that builds everything and knows in which order.

    async with Broker(config) as broker:
        ...  # broker.bootstrap_servers

Many brokers can run in one process and event loop; nothing here is global. The clock and the file layer are
injected.

Start: lock the log directories, format new ones, read the metadata log and take the lead of it, open the
partition logs, bind the listeners, register and unfence the broker, load the groups, accept connections. Whoever
connects finds a broker that answers everything. Stop, in reverse: parked requests are answered, connections
closed, logs synced and marked as cleanly closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from pykafka_broker.apis import APIS
from pykafka_broker.apis.fetch_sessions import FetchSessionCache
from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig, DynamicConfig, log_config_for
from pykafka_broker.coordinator.service import GroupService
from pykafka_broker.log.files import FileSystem, OsFileSystem
from pykafka_broker.log.manager import Intervals, LogManager
from pykafka_broker.log.partition import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.server import offsets_topic
from pykafka_broker.server.clock import Clock, SystemClock
from pykafka_broker.server.connection import ConnectionLimits, Network
from pykafka_broker.server.dispatch import Dispatch
from pykafka_broker.server.event_loop import raise_open_file_limit
from pykafka_broker.server.listeners import Endpoint, ListenerLimits, Listeners
from pykafka_broker.server.memory import RequestMemory
from pykafka_broker.server.metadata_quorum import MetadataQuorum
from pykafka_broker.server.replicas import Partition, ReplicaManager
from pykafka_broker.server.topic_creation import TopicCreation
from pykafka_broker.server.waiting import WaitingRoom
from pykafka_broker.server.wall_timers import WallTimers

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

logger = logging.getLogger("kafka.server.BrokerServer")
lifecycle_logger = logging.getLogger("kafka.server.BrokerLifecycleManager")
server_logger = logging.getLogger("kafka.server.KafkaRaftServer")

Result = TypeVar("Result")

#: Threads for file work that can stall: syncs, cold reads, deletions.
WORKER_THREADS = 4
#: How often periodic work looks whether it is due.
TICK_MS = 1_000
#: How long a stop waits for requests that are being served.
STOP_GRACE_MS = 5_000


class Broker:
    """One Kafka broker with its controller; the `Node` that API handlers see.

    Attributes:
        bootstrap_servers: "host:port" of the first listener, for clients; known once started.
    """

    def __init__(
        self, config: BrokerConfig, *, clock: Clock | None = None, files: FileSystem | None = None
    ) -> None:
        self.node_id = config.node_id
        self.apis = APIS
        self.supported_features = {name: (low, high) for name, (low, high) in NODE_FEATURES.items()}
        self.dynamic_config = DynamicConfig(config)
        self.clock: Clock = SystemClock() if clock is None else clock
        self._files: FileSystem = OsFileSystem() if files is None else files
        self._workers: ThreadPoolExecutor | None = None
        self._tick: asyncio.Task[None] | None = None
        self._stopped: asyncio.Event = asyncio.Event()
        self._failure: Exception | None = None

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self.dynamic_config.current

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self._image

    @property
    def bootstrap_servers(self) -> str:
        """Where clients of the first listener connect."""
        listener = next(iter(self.listeners.listeners.values()))
        host, port = self.listeners.advertised(listener.name)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # -- life ------------------------------------------------------------------------------------------
