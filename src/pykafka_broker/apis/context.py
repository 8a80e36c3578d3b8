"""What a handler may ask for: the facts of its request, and the services of the node that serves it.

`RequestContext` is made by the connection for each request. `Node` is the broker as handlers see it; the
composition root (`broker/broker.py`) implements it. Handlers get everything through these two, so that they
can be run against any node a test puts together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

if TYPE_CHECKING:
    from pykafka_broker.apis.api import Api
    from pykafka_broker.apis.fetch_sessions import FetchSessionCache
    from pykafka_broker.cluster.events import (
        AlterConfigsResult,
        ConfigChange,
        CreatePartitionsResult,
        CreateTopicResult,
        DeleteTopicResult,
        NewConfigs,
        NewPartitions,
        NewTopic,
    )
    from pykafka_broker.cluster.image import ClusterImage
    from pykafka_broker.config import BrokerConfig, DynamicConfig
    from pykafka_broker.coordination.groups import GroupService
    from pykafka_broker.coordination.transactions import TransactionService
    from pykafka_broker.coordinator.markers import Marker
    from pykafka_broker.coordinator.txn.state import TopicPartition
    from pykafka_broker.log.manager.log_manager import LogManager
    from pykafka_broker.log.partition.partition_log import AppendResult, PartitionLog
    from pykafka_broker.protocol.errors import ErrorCode

Result = TypeVar("Result")
Read = TypeVar("Read", covariant=True)
Buffer = Union[bytes, bytearray, memoryview]


class Reading(Protocol[Read]):
    """A read that a thread carries out; it can be awaited."""

    def done(self) -> bool: ...

    def result(self) -> Read:
        """What was read; raises what the read has raised."""
        ...

    def __await__(self) -> Generator[Any, None, Read]: ...


class ClientConnection(Protocol):
    """The connection a request came in on, as far as handlers care."""

    listener_name: str
    #: The peer's address without port, as Kafka shows it in group descriptions: "/127.0.0.1".
    client_host: str

    @property
    def closed(self) -> bool:
        """True once the peer is gone: a parked answer is of no use any more."""
        ...

    @property
    def answer_budget_bytes(self) -> int:
        """How large an answer may be, given what peers have not read yet; one batch is always allowed."""
        ...

    def reads_ahead(self, change_bytes: int) -> None:
        """So much more, or less, is being read into memory for an answer of this connection."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...


class LedPartition(Protocol):
    """A partition this node leads: its log, and the rules of replication around it."""

    topic: str
    topic_id: bytes
    partition: int
    log: PartitionLog
    leader_epoch: int

    def append(
        self,
        records: Buffer,
        *,
        required_acks: int,
        produce_version: int,
        now_ms: int,
        guard: int = 0,
    ) -> AppendResult:
        """Append what a producer sent and, where no other replica has to follow, move the high watermark.

        A transaction's first batch brings the guard under which the coordinator has confirmed it.

        Raises:
            KafkaError: the batch is refused (nothing was written), or the storage failed.
            NamesDue: a file has to be made before (`LogManager.make_names`).
        """
        ...

    def acknowledged(self, next_offset: int) -> Awaitable[ErrorCode] | None:
        """None if everything below `next_offset` may be acknowledged now, else what to wait for."""
        ...


class Controller(Protocol):
    """Who decides on metadata. Answers come when a change is committed, and this node has applied it.

    `timeout_ms` is the caller's patience: REQUEST_TIMED_OUT after it, though the change may still happen.
    """

    async def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
    ) -> Sequence[CreateTopicResult]: ...

    async def delete_topics(
        self, topics: Sequence[tuple[str | None, bytes]], *, timeout_ms: int
    ) -> Sequence[DeleteTopicResult]: ...

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, timeout_ms: int, validate_only: bool = False
    ) -> Sequence[CreatePartitionsResult]: ...

    async def incremental_alter_configs(
        self, resources: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> Sequence[AlterConfigsResult]: ...

    async def alter_configs(
        self, resources: Sequence[NewConfigs], *, validate_only: bool = False
    ) -> Sequence[AlterConfigsResult]: ...


class Node(Protocol):
    """The broker that serves a request."""

    node_id: int
    logs: LogManager
    groups: GroupService
    transactions: TransactionService
    fetch_sessions: FetchSessionCache
    #: `fetch.max.bytes`: the most one Fetch answer carries, whatever the client allows.
    fetch_max_bytes: int
    #: What this listener serves, in key order.
    apis: Sequence[Api]
    #: Feature name -> (lowest, highest) level this node supports.
    supported_features: Mapping[str, tuple[int, int]]
    #: 0 where the voters of the metadata quorum stand in the configuration alone.
    kraft_version: int

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        ...

    @property
    def config(self) -> BrokerConfig:
        """The broker's effective configuration, dynamic changes included."""
        ...

    @property
    def dynamic_config(self) -> DynamicConfig:
        """Where every value of every resource comes from; feeds DescribeConfigs."""
        ...

    @property
    def controller(self) -> Controller:
        """The controller that decides on metadata changes."""
        ...

    def now_ms(self) -> int:
        """Wall clock in milliseconds."""
        ...

    def partition(self, topic: str, partition: int) -> LedPartition | None:
        """The partition if this node leads it, else None; `partition_error` then says why not."""
        ...

    def partition_error(self, topic: str, partition: int) -> ErrorCode:
        """Why `partition` is not served here: unknown, led elsewhere, or its log directory is offline."""
        ...

    def advertised(self, broker_id: int, ctx: RequestContext) -> tuple[str, int] | None:
        """Host and port under which a client of this listener reaches a broker; None if it has no such
        listener.
        """
        ...

    async def alter_replica_log_dir(self, topic: str, partition: int, path: str) -> ErrorCode:
        """Begin to move a partition of this node to another log directory, or have it made there."""
        ...

    def new_topic_id(self) -> bytes:
        """A fresh random topic id."""
        ...

    def random_alive_broker_id(self) -> int:
        """An unfenced broker for clients to send controller requests to; -1 if there is none."""
        ...

    async def auto_create_topics(self, names: Sequence[str], ctx: RequestContext) -> None:
        """Create missing topics with the broker's defaults, as far as allowed; errors show in the image."""
        ...

    async def ensure_offsets_topic(self) -> bool:
        """Create `__consumer_offsets` if it is missing; True when its partitions are led and loaded."""
        ...

    async def ensure_transactions_topic(self) -> bool:
        """The same for `__transaction_state`."""
        ...

    async def write_markers(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Write a transaction marker into partitions led here; the outcome of each, once it is committed."""
        ...

    async def wait_for(
        self,
        logs: Iterable[PartitionLog],
        until_ms: int,
        ctx: RequestContext,
        ready: Callable[[PartitionLog], bool] | None = None,
    ) -> bool:
        """Park until one of `logs` moves (True), or `until_ms`, or the broker stops (False).

        `ready` is asked at each move, with the log that moved, and only a true answer ends the wait.

        Raises:
            Disconnected: the peer went away; the handler ends.
        """
        ...

    def run_blocking(self, function: Callable[[], Result]) -> Awaitable[Result]:
        """Run file work that can stall in a worker thread."""
        ...

    def read_cold(self, log: PartitionLog, read: Callable[[], Result]) -> Reading[Result]:
        """Read what of a log may have to come from its disk, in a thread for that disk."""
        ...

    async def first_read(self, reads: Collection[Reading[Any]], until_ms: int) -> None:
        """Return when one of these reads has ended, or at `until_ms`."""
        ...

    def give_up_read(self, log: PartitionLog, read: Reading[Any]) -> None:
        """No fetch waits for a read any more. It goes on, and when it ends the log is said to have moved."""
        ...

    def is_read_late(self, log: PartitionLog) -> bool:
        """Whether a read of the log was given up and goes on: its disk is not to be waited for."""
        ...

    async def allocate_producer_id(self) -> int:
        """The next producer id of this broker's block."""
        ...


class RequestContext:
    """One request's surroundings.

    `version` is the request's API version; `client_id` may be None; `principal` is the authenticated user
    ("User:ANONYMOUS" on a plain connection).
    """

    __slots__ = ("api_key", "client_id", "connection", "correlation_id", "node", "principal", "version")

    def __init__(
        self,
        node: Node,
        connection: ClientConnection,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        principal: str = "User:ANONYMOUS",
    ) -> None:
        self.node = node
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.principal = principal
