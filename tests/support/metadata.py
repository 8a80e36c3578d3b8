"""A node's metadata in the test's own event loop: its log over files in memory, and the controller.

node = Node()
controller = await node.start()                 # the channel to the controller; the broker is ready
await node.create_topics(NewTopic("orders"))
assert list(node.image.topics) == ["orders"]
after = Node(node.files.power_cut())            # what the next process finds
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.features import NODE_FEATURES, bootstrap_records
from pykafka_broker.cluster.image import ClusterImage, RegisteredEndpoint
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.controller.bootstrap import read_bootstrap_records
from pykafka_broker.controller.broker_probes import Probe
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import (
    BrokerHeartbeat,
    CreateTopicResult,
    CreateTopics,
    HeartbeatResult,
    NewTopic,
    RegisterBroker,
)
from pykafka_broker.controller.core.state import ControllerRules, TokenRules
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.disk.names import METADATA_TOPIC
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.replica import MetadataReplica, ReplicaPorts
from pykafka_broker.metadata.snapshotter import SnapshotSettings
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.format import METADATA_FOLDER, NewNode, format_storage, random_uuid
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles

Result = TypeVar("Result")

DATA = "/data"
FOLDER = join(DATA, METADATA_FOLDER)
ENDPOINTS = {"CONTROLLER": ("localhost", 9093)}
#: The metadata.version at which nodes are formatted.
VERSION = 30


def formatted(node_id: int = 1, cluster_id: str | None = None) -> MemoryFiles:
    """The files of a new node that is a quorum by itself."""
    files = MemoryFiles()
    values = tuple(encode_record(record, VERSION) for record in bootstrap_records())
    format_storage(files, [DATA], NewNode(node_id, values, ENDPOINTS, cluster_id), now_ms=0)
    return files


def open_metadata_log(files: MemoryFiles, segment_bytes: int = 1 << 26) -> PartitionLog:
    """The metadata log in these files, recovered, or a new one."""
    config = LogConfig(segment_bytes=segment_bytes, cleanup_policy=frozenset())
    environment = Environment(files)
    identity = LogIdentity(FOLDER, METADATA_TOPIC, 0, METADATA_TOPIC_ID)
    if any(entry.name.endswith(".log") for entry in files.entries(FOLDER)):
        return open_log(environment, identity, config, clean=False, now_ms=0)
    return create_log(environment, identity, config)


class Worker:
    """A worker thread that runs its jobs while `free` is set: a test that clears it holds syncs back, and so
    commits.
    """

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()

    async def run(self, job: Callable[[], Result]) -> Result:
        await self.free.wait()
        return job()


async def nothing_is_known(address: Address) -> bool:
    """What a probe tells of a broker that may live; in no real time, unlike one over the network."""
    return False


class Node:
    """A node that is a quorum by itself, and leads it once it is started."""

    def __init__(
        self,
        files: MemoryFiles | None = None,
        *,
        segment_bytes: int = 1 << 26,
        snapshots: SnapshotSettings | None = None,
        probe: Probe = nothing_is_known,
        tokens: TokenRules | None = None,
    ) -> None:
        self.files = formatted() if files is None else files
        self.clock = VirtualClock()
        self.failures: list[Exception] = []
        self.worker = Worker()
        self.free = self.worker.free
        meta = decode_meta_properties(self.files.read_file(f"{DATA}/meta.properties"))
        self.directory_id = meta.directory_id or b""
        self.broker_epoch = -1
        self.log = open_metadata_log(self.files, segment_bytes)
        self.storage = RaftStorage(self.files, self.log)
        timers = WallTimers(self.clock)
        rules = ControllerRules(1, meta.cluster_id or "", tokens=tokens)
        self.publisher = MetadataPublisher(rules.cluster_id)
        self.role = ControllerRole(
            self.publisher,
            rules,
            timers,
            read_bootstrap=partial(read_bootstrap_records, self.files, DATA),
            probe=probe,
        )
        self.replica = MetadataReplica(
            self.storage,
            Voter(ReplicaKey(1, self.directory_id), ENDPOINTS),
            self.publisher,
            ReplicaPorts(timers, DriverPorts(self.clock, self.worker.run, lambda: 0.0), self.failures.append),
            leadership=self.role,
            snapshots=snapshots or SnapshotSettings(),
        )

    @property
    def image(self) -> ClusterImage:
        """The newest published metadata."""
        return self.publisher.image

    async def start(self, previous_broker_epoch: int = -1) -> ControllerRole:
        """Lead, and let the broker be ready; the controller."""
        await self.replica.start()
        self.broker_epoch = await self.register(
            1, self.directory_id, previous_broker_epoch=previous_broker_epoch
        )
        await heartbeat_of(self, 1, self.broker_epoch)
        return self.role

    async def register(self, broker_id: int, directory_id: bytes | None = None, **fields: Any) -> int:
        """Register a broker, here or elsewhere; its epoch."""
        event = RegisterBroker(
            broker_id,
            self.image.cluster_id,
            random_uuid(),
            {"PLAINTEXT": RegisteredEndpoint("localhost", 9091 + broker_id)},
            NODE_FEATURES,
            (directory_id or random_uuid(),),
        )
        epoch: int = await self.role.ask(event._replace(**fields))
        return epoch

    async def create_topics(
        self, *topics: NewTopic, timeout_ms: int | None = None
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics; a result for each."""
        event = CreateTopics(topics)
        results: tuple[CreateTopicResult, ...] = await each_result(event, self.role.ask(event, timeout_ms))
        return results

    async def shut_down_broker(self) -> None:
        """Let the controller hand over what the broker leads; no other broker has to be waited for."""
        asking = await heartbeat_of(self, 1, self.broker_epoch, want_shutdown=True)
        if not asking.should_shut_down:
            allowed = await heartbeat_of(self, 1, self.broker_epoch, want_shutdown=True)
            assert allowed.should_shut_down

    async def close(self) -> None:
        """Stop."""
        await self.replica.close()

    def records(self) -> list[object]:
        """All metadata records in the log."""
        batches = self.storage.read(0, self.log.state.log_end_offset)
        return [decode_record(value) for batch in batches for value in batch.values or ()]


async def heartbeat_of(
    node: Node, broker_id: int, broker_epoch: int, *, want_shutdown: bool = False
) -> HeartbeatResult:
    """A heartbeat of a broker that has all metadata of `node` and is ready."""
    offset = node.publisher.published_offset - 1
    event = BrokerHeartbeat(broker_id, broker_epoch, offset, want_shutdown=want_shutdown)
    result: HeartbeatResult = await node.role.ask(event)
    return result
