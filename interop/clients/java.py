"""Apache Kafka's Java client, driven from Python through py4j: one JVM for all scenarios of a release."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from interop.clients.client import (
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
from pykafka_broker.testing.apache.jars import VERSION
from pykafka_broker.testing.apache.tools import command

TIMEOUT_S = 30.0
#: The property that lets Kafka's clients ask a URL for tokens.
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
BYTES = "org.apache.kafka.common.serialization.ByteArray"


class Jvm:
    """A JVM with Kafka's jars and a py4j gateway; it ends with this process, or at close."""

    def __init__(self, version: str) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        self.process = subprocess.Popen(
            command(
                "py4j.GatewayServer",
                *("--die-on-broken-pipe", "0"),
                jvm_options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                version=version,
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self.jvm: Any = self.gateway.jvm
        self.kafka = self.jvm.org.apache.kafka

    def close(self) -> None:
        self.gateway.shutdown()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(TIMEOUT_S)

    def properties(self, settings: Mapping[str, object]) -> Any:
        properties = self.jvm.java.util.Properties()
        for key, value in settings.items():
            properties.setProperty(key, str(value))
        return properties

    def duration(self, seconds: float) -> Any:
        return self.jvm.java.time.Duration.ofMillis(int(seconds * 1000))

    def partition(self, topic: str, partition: int) -> Any:
        return self.kafka.common.TopicPartition(topic, partition)

    def records_to_delete(self, before: int) -> Any:
        """`RecordsToDelete.beforeOffset(n)`: py4j does not find a static method beside one of its name."""
        lang = self.jvm.java.lang
        types = self.gateway.new_array(lang.Class, 1)
        types[0] = lang.Long.TYPE
        arguments = self.gateway.new_array(lang.Object, 1)
        arguments[0] = lang.Long.valueOf(before)
        kind = lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
        return kind.getMethod("beforeOffset", types).invoke(None, arguments)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """A Kafka error, however deep inside, as its code."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            cause = error.java_exception
            while cause.getClass().getName() == "java.util.concurrent.ExecutionException":
                cause = cause.getCause()
            code = self.kafka.common.protocol.Errors.forException(cause).code()
            raise Refused(int(code), cause.toString()) from error


def each(iterable: Any) -> Iterator[Any]:
    """The elements of any java.lang.Iterable: py4j knows only lists, sets and maps."""
    elements = iterable.iterator()
    while elements.hasNext():
        yield elements.next()


class JavaMember(Member):
    def __init__(self, jvm: Jvm, consumer: Any) -> None:
        self.jvm, self.consumer = jvm, consumer

    def poll(self, timeout_s: float) -> list[Record]:
        with self.jvm.refusals():
            return [to_record(record) for record in each(self.consumer.poll(self.jvm.duration(timeout_s)))]

    def assignment(self) -> frozenset[int]:
        return frozenset(partition.partition() for partition in self.consumer.assignment())

    def commit(self) -> None:
        with self.jvm.refusals():
            self.consumer.commitSync()

    def close(self) -> None:
        self.consumer.close()


class JavaShareMember(ShareMember):
    def __init__(self, jvm: Jvm, consumer: Any) -> None:
        self.jvm, self.consumer = jvm, consumer
        #: What was polled last, by partition and offset.
        self._polled: dict[tuple[int, int], Any] = {}
        self._has_renewed = False

    def poll(self, timeout_s: float) -> list[Record]:
        with self.jvm.refusals():
            polled = list(each(self.consumer.poll(self.jvm.duration(timeout_s))))
        self._polled = {(record.partition(), record.offset()): record for record in polled}
        return [
            replace(to_record(record), delivery_count=int(record.deliveryCount().get())) for record in polled
        ]

    def acknowledge(self, record: Record, how: Acknowledgement) -> None:
        kind = self.jvm.kafka.clients.consumer.AcknowledgeType.valueOf(how.upper())
        self.consumer.acknowledge(self._polled[record.partition, record.offset], kind)
        self._has_renewed |= how == "renew"

    def commit(self) -> None:
        with self.jvm.refusals():
            for error in self.consumer.commitSync().values():
                if error.isPresent():
                    code = self.jvm.kafka.common.protocol.Errors.forException(error.get()).code()
                    raise Refused(int(code), error.get().toString())
        if self._has_renewed:
            # The next poll gives them once more, and then they can be acknowledged.
            self._has_renewed = False
            self.poll(TIMEOUT_S)

    def close(self) -> None:
        with self.jvm.refusals():
            self.consumer.close()


class JavaTransactions(Transactions):
    def __init__(self, client: Java, producer: Any) -> None:
        self.client, self.jvm, self.producer = client, client.jvm, producer
        with self.jvm.refusals():
            producer.initTransactions()

    def begin(self) -> None:
        with self.jvm.refusals():
            self.producer.beginTransaction()

    def send(self, topic: str, records: Sequence[Record]) -> None:
        with self.jvm.refusals():
            sent = [self.producer.send(self.client.to_java(topic, record)) for record in records]
            self.producer.flush()
            for future in sent:
                future.get()

    def commit(self) -> None:
        with self.jvm.refusals():
            self.producer.commitTransaction()

    def abort(self) -> None:
        with self.jvm.refusals():
            self.producer.abortTransaction()

    def close(self) -> None:
        self.producer.close(self.jvm.duration(5))


def to_record(record: Any) -> Record:
    return Record(
        value=record.value(),
        key=record.key(),
        headers=tuple((header.key(), header.value()) for header in each(record.headers())),
        timestamp_ms=record.timestamp(),
        partition=record.partition(),
        offset=record.offset(),
    )


ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class Java(Client):
    name = "java"
    strategies = ("roundrobin", "sticky", "cooperative-sticky")
    version = VERSION

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        self.jvm = Jvm(self.version)
        if login and login.token_endpoint:
            self.jvm.jvm.java.lang.System.setProperty(ALLOWED_URLS, login.token_endpoint)
        #: What every client of this one has.
        self.common = {"bootstrap.servers": bootstrap, **(login.for_java() if login else {})}
        self.admin = self.jvm.kafka.clients.admin.Admin.create(
            self.jvm.properties({**self.common, "default.api.timeout.ms": 30_000})
        )

    def close(self) -> None:
        self.admin.close()
        self.jvm.close()

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = self.jvm.kafka.clients.producer.KafkaProducer(
            self.jvm.properties(
                {
                    **self.common,
                    "acks": acks,
                    "compression.type": codec,
                    "enable.idempotence": str(idempotent).lower(),
                    "max.request.size": 4 << 20,
                    "delivery.timeout.ms": 31_000,
                    "key.serializer": BYTES + "Serializer",
                    "value.serializer": BYTES + "Serializer",
                }
            )
        )
        try:
            with self.jvm.refusals():
                sent = [producer.send(self.to_java(topic, record)) for record in records]
                producer.flush()
                return [int(future.get().offset()) for future in sent]
        finally:
            producer.close()

    def to_java(self, topic: str, record: Record) -> Any:
        headers = self.jvm.jvm.java.util.ArrayList()
        for key, value in record.headers:
            headers.add(self.jvm.kafka.common.header.internals.RecordHeader(key, value))
        return self.jvm.kafka.clients.producer.ProducerRecord(
            topic, record.partition, record.timestamp_ms, record.key, record.value, headers
        )

    def consumer(self, **settings: object) -> Any:
        return self.jvm.kafka.clients.consumer.KafkaConsumer(
            self.jvm.properties(
                {
                    **self.common,
                    "enable.auto.commit": "false",
                    "auto.offset.reset": "none",
                    "key.deserializer": BYTES + "Deserializer",
                    "value.deserializer": BYTES + "Deserializer",
                    **{key.replace("_", "."): value for key, value in settings.items()},
                }
            )
        )

    @contextmanager
    def assigned(self, topic: str, partitions: Sequence[int], **settings: object) -> Iterator[Any]:
        consumer = self.consumer(**settings)
        try:
            consumer.assign([self.jvm.partition(topic, partition) for partition in partitions])
            with self.jvm.refusals():
                yield consumer
        finally:
            consumer.close()

    def read(
        self,
        topic: str,
        partitions: Sequence[int] = (0,),
        *,
        start: int | None = None,
        fetch_bytes: int | None = None,
        committed: bool = False,
    ) -> list[Record]:
        isolation = "read_committed" if committed else "read_uncommitted"
        limits = (
            {}
            if fetch_bytes is None
            else {"max_partition_fetch_bytes": fetch_bytes, "fetch_max_bytes": fetch_bytes}
        )
        with self.assigned(topic, partitions, isolation_level=isolation, **limits) as consumer:
            assigned = list(consumer.assignment())
            ends = {partition.partition(): end for partition, end in consumer.endOffsets(assigned).items()}
            if start is None:
                consumer.seekToBeginning(assigned)
            else:
                for partition in assigned:
                    consumer.seek(partition, start)
            found: list[Record] = []
            while any(consumer.position(p) < ends[p.partition()] for p in assigned):
                found += [to_record(record) for record in each(consumer.poll(self.jvm.duration(1)))]
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        partition = self.jvm.partition(topic, 0)
        try:
            with self.assigned(topic, [0], auto_offset_reset=reset) as consumer:
                consumer.seek(partition, offset)
                deadline = time.monotonic() + TIMEOUT_S
                while time.monotonic() < deadline:
                    for record in each(consumer.poll(self.jvm.duration(0.1))):
                        return int(record.offset())
                    if (position := consumer.position(partition)) != offset:
                        return int(position)
        except Refused as refused:
            # The client's own OffsetOutOfRangeException.
            if "OutOfRange" in str(refused):
                return None
            raise
        raise AssertionError("the consumer neither moved nor failed")

    def beginning(self, topic: str, partition: int = 0) -> int:
        with self.assigned(topic, [partition]) as consumer:
            (found,) = consumer.beginningOffsets(consumer.assignment()).values()
            return int(found)

    def end(self, topic: str, partition: int = 0) -> int:
        with self.assigned(topic, [partition]) as consumer:
            (found,) = consumer.endOffsets(consumer.assignment()).values()
            return int(found)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        wanted = self.jvm.jvm.java.util.HashMap()
        wanted.put(self.jvm.partition(topic, partition), timestamp_ms)
        with self.assigned(topic, [partition]) as consumer:
            (found,) = consumer.offsetsForTimes(wanted).values()
            return None if found is None else int(found.offset())

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
            partition_assignment_strategy=f"org.apache.kafka.clients.consumer.{ASSIGNORS[strategy]}",
            **static,
        )
        consumer.subscribe([topic])
        return JavaMember(self.jvm, consumer)

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
        if subscription.startswith("^"):
            consumer.subscribe(self.jvm.kafka.clients.consumer.SubscriptionPattern(subscription))
        else:
            consumer.subscribe([subscription])
        return JavaMember(self.jvm, consumer)

    def share_member(
        self, group: str, topic: str, *, explicit: bool = False, max_records: int = 500
    ) -> ShareMember:
        settings = {
            **self.common,
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            "max.poll.records": max_records,
            "key.deserializer": BYTES + "Deserializer",
            "value.deserializer": BYTES + "Deserializer",
        }
        consumer = self.jvm.kafka.clients.consumer.KafkaShareConsumer(self.jvm.properties(settings))
        consumer.subscribe([topic])
        return JavaShareMember(self.jvm, consumer)

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> JavaTransactions:
        settings = {
            **self.common,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "key.serializer": BYTES + "Serializer",
            "value.serializer": BYTES + "Serializer",
        }
        return JavaTransactions(
            self, self.jvm.kafka.clients.producer.KafkaProducer(self.jvm.properties(settings))
        )

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        member = self.member(group, source)
        assert isinstance(member, JavaMember)
        writer = self.transactions(transactional_id)

        def send_offsets() -> None:
            consumer, offsets = member.consumer, self.jvm.jvm.java.util.HashMap()
            with self.jvm.refusals():
                for partition in consumer.assignment():
                    position = self.jvm.kafka.clients.consumer.OffsetAndMetadata(consumer.position(partition))
                    offsets.put(partition, position)
                writer.producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata())

        copy_by(member, writer, send_offsets, target, count=count, commit=commit)

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        with self.jvm.refusals():
            stored = self.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
        found = stored.get(self.jvm.partition(topic, partition))
        return None if found is None else int(found.offset())

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        partition = self.jvm.partition(topic, 0)
        wanted = self.jvm.jvm.java.util.HashMap()
        wanted.put(partition, self.jvm.kafka.clients.consumer.OffsetAndMetadata(offset, metadata))
        with self.assigned(topic, [0], group_id=group) as consumer:
            consumer.commitSync(wanted)
            (found,) = consumer.committed(consumer.assignment()).values()
            return str(found.metadata())

    def cluster(self) -> ClusterView:
        with self.jvm.refusals():
            described = self.admin.describeCluster()
            nodes = each(described.nodes().get())
            brokers = frozenset((node.id(), f"{node.host()}:{node.port()}") for node in nodes)
            return ClusterView(described.clusterId().get(), described.controller().get().id(), brokers)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        wanted = self.jvm.kafka.clients.admin.NewTopic(name, partitions, replication_factor)
        with self.jvm.refusals():
            self.admin.createTopics([wanted.configs(dict(configs or {}))]).all().get()

    def topics(self) -> set[str]:
        with self.jvm.refusals():
            return set(self.admin.listTopics().names().get())

    def partitions(self, topic: str) -> int:
        with self.jvm.refusals():
            (described,) = self.admin.describeTopics([topic]).allTopicNames().get().values()
            return len(described.partitions())

    def delete_topic(self, name: str) -> None:
        with self.jvm.refusals():
            self.admin.deleteTopics([name]).all().get()

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: self.jvm.kafka.clients.admin.NewPartitions.increaseTo(total)}
        with self.jvm.refusals():
            self.admin.createPartitions(wanted).all().get()

    def resource(self, name: str, kind: str = "TOPIC") -> Any:
        config = self.jvm.kafka.common.config
        return config.ConfigResource(getattr(config, "ConfigResource$Type").valueOf(kind), name)

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        with self.jvm.refusals():
            (described,) = self.admin.describeConfigs([self.resource(topic)]).all().get().values()
            return {entry.name(): (entry.value(), entry.isDefault()) for entry in each(described.entries())}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self._set(self.resource(topic), key, value)

    def set_group_config(self, group: str, key: str, value: str) -> None:
        self._set(self.resource(group, "GROUP"), key, value)

    def _set(self, resource: Any, key: str, value: str) -> None:
        admin = self.jvm.kafka.clients.admin
        change = admin.AlterConfigOp(
            admin.ConfigEntry(key, value), getattr(admin, "AlterConfigOp$OpType").SET
        )
        with self.jvm.refusals():
            self.admin.incrementalAlterConfigs({resource: [change]}).all().get()

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        wanted = {self.jvm.partition(topic, partition): self.jvm.records_to_delete(before)}
        with self.jvm.refusals():
            self.admin.deleteRecords(wanted).all().get()

    def groups(self) -> set[str]:
        with self.jvm.refusals():
            return {group.groupId() for group in each(self.list_groups().all().get())}

    def list_groups(self) -> Any:
        return self.admin.listGroups()

    def group(self, group: str) -> GroupView:
        with self.jvm.refusals():
            (described,) = self.admin.describeConsumerGroups([group]).all().get().values()
            return GroupView(self.state_of(described), len(described.members()))

    def state_of(self, described: Any) -> str:
        return str(described.groupState().toString())

    def delete_group(self, group: str) -> None:
        with self.jvm.refusals():
            self.admin.deleteConsumerGroups([group]).all().get()

    def delete_offset(self, group: str, topic: str, partition: int = 0) -> None:
        wanted = self.jvm.jvm.java.util.HashSet()
        wanted.add(self.jvm.partition(topic, partition))
        with self.jvm.refusals():
            self.admin.deleteConsumerGroupOffsets(group, wanted).all().get()


class Java39(Java):
    """The last release before 4.0, which is also what Spark's connector uses."""

    name = "java-3.9"
    version = "3.9.1"

    def can(self, ability: str) -> bool:
        return ability != "share_member" and super().can(ability)

    def list_groups(self) -> Any:
        return self.admin.listConsumerGroups()

    def state_of(self, described: Any) -> str:
        return str(described.state().toString())
