"""confluent-kafka: librdkafka, in C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    AcknowledgeType,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
    libversion,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from interop.clients.client import (
    FEATURES,
    Acknowledgement,
    Client,
    ClusterView,
    GroupView,
    Member,
    Record,
    Refused,
    ShareMember,
    Transactions,
    copy_by,
)
from interop.clients.login import Login

TIMEOUT_S = 30.0


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what the client raises as `Refused`.

    A fatal error that the client hears of in the middle of its delivery reports makes the next callback
    fail: a SystemError, with the fatal error as its cause.
    """
    try:
        yield
    except (KafkaException, SystemError) as error:
        raised = error if isinstance(error, KafkaException) else error.__cause__
        if not isinstance(raised, KafkaException):
            raise
        raise Refused(raised.args[0].code(), raised.args[0].str()) from error


def result(futures: Mapping[Any, Future[Any]]) -> Any:
    """The result of the only future of an admin call."""
    (future,) = futures.values()
    with refusals():
        return future.result(TIMEOUT_S)


def to_record(message: Any) -> Record:
    if error := message.error():
        raise Refused(error.code(), error.str())
    kind, timestamp = message.timestamp()
    return Record(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        partition=message.partition(),
        offset=message.offset(),
        delivery_count=message.delivery_count(),
    )


class ConfluentMember(Member):
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def poll(self, timeout_s: float) -> list[Record]:
        message = self.consumer.poll(timeout_s)
        first = [] if message is None else [to_record(message)]
        return first + [to_record(more) for more in self.consumer.consume(1000, 0)]

    def assignment(self) -> frozenset[int]:
        return frozenset(partition.partition for partition in self.consumer.assignment())

    def commit(self) -> None:
        with refusals():
            self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


ACKNOWLEDGEMENTS = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}


class ConfluentShareMember(ShareMember):
    def __init__(self, consumer: ShareConsumer, topic: str) -> None:
        self.consumer, self.topic = consumer, topic

    def poll(self, timeout_s: float) -> list[Record]:
        with refusals():
            return [to_record(message) for message in self.consumer.poll(timeout_s)]

    def acknowledge(self, record: Record, how: Acknowledgement) -> None:
        self.consumer.acknowledge_offset(self.topic, record.partition, record.offset, ACKNOWLEDGEMENTS[how])

    def commit(self) -> None:
        with refusals():
            for error in self.consumer.commit_sync(TIMEOUT_S).values():
                if error is not None:
                    raise error

    def close(self) -> None:
        with refusals():
            self.consumer.close()


class ConfluentTransactions(Transactions):
    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        with refusals():
            producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        with refusals():
            self.producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> None:
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Any) -> None:
            if error is not None:
                errors.append(error)

        with refusals():
            for record in records:
                self.producer.produce(topic, record.value, partition=record.partition, on_delivery=delivered)
            self.producer.flush(TIMEOUT_S)
        if errors:
            raise Refused(errors[0].code(), errors[0].str())

    def commit(self) -> None:
        with refusals():
            self.producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        with refusals():
            self.producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        """The client is closed when its last reference goes."""


class Confluent(Client):
    name = "confluent-kafka"
    strategies = ("roundrobin", "cooperative-sticky")
    features = FEATURES - {"renew"}
    version = f"{metadata.version('confluent-kafka')} (librdkafka {libversion()[0]})"

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        self.settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.metrics.push": False,
            "log_level": 0,
            **(login.for_librdkafka() if login else {}),
        }
        self.admin = AdminClient(self.settings)

    def close(self) -> None:
        self.admin.poll(0)

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = Producer(
            {
                **self.settings,
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "message.max.bytes": 4 << 20,
                "topic.metadata.refresh.interval.ms": 100,
            }
        )
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def noting(number: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    offsets[number] = -1 if offset is None else offset

            return delivered

        for number, record in enumerate(records):
            timestamp: dict[str, Any] = (
                {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            )
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                on_delivery=noting(number),
                **timestamp,
            )
        producer.flush(TIMEOUT_S)
        if errors:
            raise Refused(errors[0].code(), errors[0].str())
        return [offsets[number] for number in range(len(records))]

    def consumer(self, **settings: object) -> Consumer:
        return Consumer(
            {
                **self.settings,
                "group.id": "not-a-group",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )

    def read(
        self,
        topic: str,
        partitions: Sequence[int] = (0,),
        *,
        start: int | None = None,
        fetch_bytes: int | None = None,
        committed: bool = False,
    ) -> list[Record]:
        limits: dict[str, object] = {}
        if fetch_bytes is not None:
            limits = {
                "fetch_message_max_bytes": fetch_bytes,
                "fetch_max_bytes": fetch_bytes,
                "message_max_bytes": 1000,
            }
        isolation = "read_committed" if committed else "read_uncommitted"
        # It finds an end when a fetch has waited in vain.
        limits |= {"isolation_level": isolation, "fetch_wait_max_ms": 50}
        consumer = self.consumer(enable_partition_eof=True, **limits)
        first = OFFSET_BEGINNING if start is None else start
        consumer.assign([TopicPartition(topic, partition, first) for partition in partitions])
        at_end: set[int] = set()
        found: list[Record] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(at_end) < len(partitions):
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            for message in consumer.consume(1000, 0.2):
                error, partition = message.error(), message.partition()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    assert partition is not None
                    at_end.add(partition)
                else:
                    found.append(to_record(message))
        consumer.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        consumer = self.consumer(
            auto_offset_reset={"none": "error"}.get(reset, reset), enable_partition_eof=True
        )
        consumer.assign([TopicPartition(topic, 0, offset)])
        try:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, "the consumer neither moved nor failed"
            error, at = message.error(), message.offset()
            if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                return None
            assert at is not None
            return at
        finally:
            consumer.close()

    def _watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.consumer()
        try:
            with refusals():
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
            return low, high
        finally:
            consumer.close()

    def beginning(self, topic: str, partition: int = 0) -> int:
        return self._watermarks(topic, partition)[0]

    def end(self, topic: str, partition: int = 0) -> int:
        return self._watermarks(topic, partition)[1]

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        consumer = self.consumer()
        try:
            with refusals():
                (found,) = consumer.offsets_for_times(
                    [TopicPartition(topic, partition, timestamp_ms)], TIMEOUT_S
                )
            # librdkafka says "end" (-1) for a timestamp after the last record.
            return None if found.offset < 0 else int(found.offset)
        finally:
            consumer.close()

    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        static = {} if instance_id is None else {"group_instance_id": instance_id}
        consumer = self.consumer(
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=strategy,
            **static,
        )
        consumer.subscribe([topic])
        return ConfluentMember(consumer)

    def consumer_member(
        self,
        group: str,
        subscription: str,
        *,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> Member:
        chosen = {"group_instance_id": instance_id, "group_remote_assignor": assignor}
        consumer = self.consumer(
            group_id=group,
            group_protocol="consumer",
            auto_offset_reset="earliest",
            **{key: value for key, value in chosen.items() if value is not None},
        )
        consumer.subscribe([subscription])
        return ConfluentMember(consumer)

    def share_member(
        self, group: str, topic: str, *, explicit: bool = False, max_records: int = 500
    ) -> ConfluentShareMember:
        consumer = ShareConsumer(
            {
                **self.settings,
                "group.id": group,
                "max.poll.records": max_records,
                "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            }
        )
        consumer.subscribe([topic])
        return ConfluentShareMember(consumer, topic)

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> ConfluentTransactions:
        settings = {
            **self.settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            # A delivery may not take longer than its transaction.
            "message.timeout.ms": timeout_ms,
        }
        return ConfluentTransactions(Producer(settings))

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        member = self.member(group, source)
        assert isinstance(member, ConfluentMember)
        writer = self.transactions(transactional_id)

        def send_offsets() -> None:
            consumer = member.consumer
            with refusals():
                positions = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
                writer.producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())

        copy_by(member, writer, send_offsets, target, count=count, commit=commit)

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        (found,) = result(self.admin.list_consumer_group_offsets([asked])).topic_partitions
        return None if found.offset < 0 else int(found.offset)

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        consumer = self.consumer(group_id=group)
        try:
            with refusals():
                consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata)], asynchronous=False)
                (found,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
            return str(found.metadata)
        finally:
            consumer.close()

    def cluster(self) -> ClusterView:
        with refusals():
            described = self.admin.describe_cluster().result(TIMEOUT_S)
        brokers = frozenset((node.id, f"{node.host}:{node.port}") for node in described.nodes)
        return ClusterView(described.cluster_id, described.controller.id, brokers)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        result(
            self.admin.create_topics(
                [NewTopic(name, partitions, replication_factor, config=dict(configs or {}))]
            )
        )

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=TIMEOUT_S).topics)

    def partitions(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions)

    def delete_topic(self, name: str) -> None:
        result(self.admin.delete_topics([name]))

    def add_partitions(self, topic: str, total: int) -> None:
        result(self.admin.create_partitions([NewPartitions(topic, total)]))

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        entries = result(self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        default = ConfigSource.DEFAULT_CONFIG.value
        return {key: (entry.value, entry.source == default) for key, entry in entries.items()}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self._set(ResourceType.TOPIC, topic, key, value)

    def set_group_config(self, group: str, key: str, value: str) -> None:
        self._set(ResourceType.GROUP, group, key, value)

    def _set(self, kind: ResourceType, name: str, key: str, value: str) -> None:
        change = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[change])
        result(self.admin.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        result(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def groups(self) -> set[str]:
        with refusals():
            listed = self.admin.list_consumer_groups().result(TIMEOUT_S)
        return {group.group_id for group in listed.valid}

    def group(self, group: str) -> GroupView:
        described = result(self.admin.describe_consumer_groups([group]))
        return GroupView(described.state.name.title().replace("_", ""), len(described.members))

    def delete_group(self, group: str) -> None:
        result(self.admin.delete_consumer_groups([group]))
