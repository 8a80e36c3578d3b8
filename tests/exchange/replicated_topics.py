"""Topics with a replica on every broker of a cluster, of either kind each: written, read, compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from pykafka_broker.testing.apache.nodes import Node, Nodes
from tests.torture.clients import QUIET, new_consumer

PATIENCE_S = 60
#: Topics and coordinators live on three brokers, and go on with two.
PROPERTIES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "10000",
}


class ReplicatedTopic:
    """A topic of one partition; `written` has the values that were acknowledged, in their order."""

    def __init__(self, nodes: Nodes, name: str, replicas: Sequence[int]) -> None:
        self.nodes = nodes
        self.name = name
        self.replicas = tuple(replicas)
        self.written: list[bytes] = []

    @property
    def bootstrap(self) -> str:
        """The brokers that run."""
        return ",".join(node.address for node in self.nodes if node.is_broker and node.is_running)

    def create(self, **configs: str) -> ReplicatedTopic:
        """Create it with its first replica as the preferred leader; return when all replicas are in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        asked = NewTopic(self.name, 1, replica_assignment=[list(self.replicas)], config=configs)
        for made in admin.create_topics([asked]).values():
            made.result(PATIENCE_S)
        self.in_sync()
        return self

    def described(self) -> PartitionMetadata | None:
        """Its partition, as the brokers tell of it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        topic = admin.list_topics(self.name, timeout=PATIENCE_S).topics[self.name]
        return topic.partitions.get(0)

    def in_sync(self) -> None:
        """Return when all replicas are in sync."""
        self.nodes.comes(
            lambda: (found := self.described()) is not None and set(found.isrs) == set(self.replicas),
            lambda: f"{self.name} does not have all replicas in sync: {self._told()}",
        )

    def is_led_by(self, *node_ids: int) -> None:
        """Return when one of these brokers leads it."""
        self.nodes.comes(
            lambda: (found := self.described()) is not None and found.leader in node_ids,
            lambda: f"{self.name} is not led by {node_ids}: {self._told()}",
        )

    def _told(self) -> str:
        found = self.described()
        return "unknown" if found is None else f"leader {found.leader}, in sync {found.isrs}"

    def write(self, count: int, **settings: str) -> None:
        """Write values with acks=all and idempotence; return when they are acknowledged, each of them."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, **settings, **QUIET}
        )
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                value = message.value()
                assert isinstance(value, bytes)
                self.written.append(value)
            else:
                refused.append(error)

        for number in range(len(self.written), len(self.written) + count):
            producer.produce(self.name, b"%d" % number, on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
        assert not refused, refused

    def write_transactions(self, transactional_id: str, count: int) -> None:
        """Write a committed and an aborted transaction by turns, `count` of each."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id, **QUIET}
        )
        producer.init_transactions(PATIENCE_S)
        for _ in range(count):
            for is_committed in (True, False):
                value = b"%d" % len(self.written) if is_committed else b"aborted"
                producer.begin_transaction()
                producer.produce(self.name, value)
                producer.flush(PATIENCE_S)
                if is_committed:
                    producer.commit_transaction(PATIENCE_S)
                    self.written.append(value)
                else:
                    producer.abort_transaction(PATIENCE_S)

    def is_read_as_written(self) -> None:
        """Check that consumers read what was acknowledged: all of it, once, in its order."""
        consumer = new_consumer(self.bootstrap)
        consumer.assign([TopicPartition(self.name, 0, 0)])
        read: list[bytes] = []
        while len(read) < len(self.written):
            messages = consumer.consume(len(self.written) - len(read), timeout=PATIENCE_S)
            assert messages, f"{len(read)} of {len(self.written)} records of {self.name} are read"
            read += [value for message in messages if (value := message.value()) is not None]
        consumer.close()
        assert read == self.written

    def has_the_same_bytes_everywhere(self) -> None:
        """Check, of brokers that are stopped, that all replicas have the same segments."""
        first, *others = (self._bytes_of(self.nodes[replica]) for replica in self.replicas)
        assert first
        for node_id, other in zip(self.replicas[1:], others, strict=True):
            assert other == first, f"{self.name} differs between {self.replicas[0]} and {node_id}"

    def _bytes_of(self, node: Node) -> bytes:
        """The batches of a replica, with their offsets and leader epochs."""
        segments = sorted(Path(node.data_dir, f"{self.name}-0").glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)
