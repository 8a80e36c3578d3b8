"""The coordinators' ports to the node that they run on: the same objects that handlers see, but narrower."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.controller.core.events import CreateTopicResult, CreateTopics
from pykafka_broker.coordinator.broker_queues import Brokers
from pykafka_broker.coordinator.groups.regexes import DescribableTopics
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.history import Tell, unheard
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.system.named_tuple import NamedTuple

Result = TypeVar("Result")


class Metadata(Protocol):
    """The cluster's metadata as this node knows it."""

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        ...


class Configs(Protocol):
    """The node's configuration."""

    @property
    def current(self) -> BrokerConfig:
        """The values in force, dynamic changes included."""
        ...


class Controller(Protocol):
    """The controller, which creates topics."""

    def ask(self, event: CreateTopics, timeout_ms: int) -> Awaitable[Sequence[CreateTopicResult]]:
        """Create topics; the answer comes when they are committed and their logs exist.

        Raises:
            KafkaError: the controller could not decide, or not in time.
        """
        ...


class LedPartitions(Protocol):
    """Finds the partitions this node leads."""

    def led(self, topic: str, partition: int) -> LeadingReplica | None:
        """The partition if this node leads it, else None; `why_not_led` then gives the error."""
        ...

    def why_not_led(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition that this node does not lead."""
        ...


class Threads(Protocol):
    """The worker threads of this node."""

    def run_blocking(self, function: Callable[[], Result]) -> Awaitable[Result]:
        """Run work that would hold up the event loop, such as file work, in a worker thread."""
        ...


class ColdReads(Protocol):
    """Reads that the page cache may not be able to serve, and that may have to wait for a disk."""

    def run(self, log: PartitionLog, read: Callable[[], Result]) -> Awaitable[Result]:
        """Read from a log in a thread for its disk."""
        ...


class ProducerIds(Protocol):
    """Gives out each producer id once."""

    def next_id(self) -> Awaitable[int]:
        """The next producer id.

        Raises:
            KafkaError: the controller could not allocate any.
        """
        ...


class OtherBrokers(NamedTuple):
    """The other brokers of the cluster, over a connection per purpose: markers and share states wait for
    replicas, and other requests must not wait behind them.
    """

    markers: Brokers
    questions: Brokers
    share_states: Brokers


class CoordinatorPorts(NamedTuple):
    """All of these together."""

    node_id: int
    clock: Clock
    configs: Configs
    metadata: Metadata
    partitions: LedPartitions
    threads: Threads
    cold_reads: ColdReads
    producer_ids: ProducerIds
    others: OtherBrokers
    describable_topics: DescribableTopics
    tell: Tell = unheard
