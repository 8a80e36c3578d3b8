"""kafka-python 3: pure Python, synchronous."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    NoError,
    OffsetOutOfRangeError,
    for_code,
)
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata

from interop.clients.client import (
    Client,
    ClusterView,
    GroupView,
    Member,
    Record,
    Refused,
    Transactions,
    copy_by,
)
from interop.clients.login import OAUTHBEARER, Login


@contextmanager
def refusals() -> Iterator[None]:
    """The errors of the broker, and those of a client that has lost it and does not wait for it."""
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, error) from error
    except KafkaError as error:
        raise Refused(-1, error) from error


def to_record(message: object) -> Record:
    return Record(
        value=message.value,  # type: ignore[attr-defined]
        key=message.key,  # type: ignore[attr-defined]
        headers=tuple(message.headers),  # type: ignore[attr-defined]
        timestamp_ms=message.timestamp,  # type: ignore[attr-defined]
        partition=message.partition,  # type: ignore[attr-defined]
        offset=message.offset,  # type: ignore[attr-defined]
    )


class KafkaPythonMember(Member):
    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer

    def poll(self, timeout_s: float) -> list[Record]:
        # A poll that times out while the answer to its SyncGroup is on its way loses the assignment for good
        # (3.0.12): its metadata refresh, 100 ms after the first join, makes that likely with short polls.
        # It also passes on, as retriable, that the node it asked for metadata is gone: programs poll again.
        with refusals(), suppress(KafkaConnectionError):
            polled = self.consumer.poll(timeout_ms=max(int(timeout_s * 1000), 1000))
            return [to_record(message) for messages in polled.values() for message in messages]
        return []

    def assignment(self) -> frozenset[int]:
        return frozenset(partition.partition for partition in self.consumer.assignment())

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close(autocommit=False)


class KafkaPythonTransactions(Transactions):
    def __init__(self, producer: KafkaProducer) -> None:
        self.producer = producer
        with refusals():
            producer.init_transactions()

    def begin(self) -> None:
        with refusals():
            self.producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Record]) -> None:
        with refusals():
            sent = [self.producer.send(topic, value=r.value, partition=r.partition) for r in records]
            for future in sent:
                future.get(timeout=30)

    def commit(self) -> None:
        with refusals():
            self.producer.commit_transaction()

    def abort(self) -> None:
        with refusals():
            self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(timeout=5)


class BearerTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Asks the issuer for each token."""

    def __init__(self, login: Login) -> None:
        super().__init__()
        self._login = login

    def token(self) -> str:
        return self._login.bearer_token()


def settings_of(login: Login) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": login.protocol, "ssl_cafile": login.ca}
    if login.certificate:
        settings |= {"ssl_certfile": login.certificate, "ssl_keyfile": login.certificate}
    if login.mechanism == OAUTHBEARER:
        settings |= {"sasl_mechanism": OAUTHBEARER, "sasl_oauth_token_provider": BearerTokens(login)}
    elif login.mechanism:
        settings |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        }
    return settings


class KafkaPython(Client):
    name = "kafka-python"
    strategies = ("roundrobin", "cooperative-sticky")
    version = metadata.version("kafka-python")

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        #: What every client of this one has.
        self.common = {"bootstrap_servers": bootstrap, **(settings_of(login) if login else {})}
        self.admin = KafkaAdminClient(**self.common)

    def close(self) -> None:
        self.admin.close()

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        with (
            refusals(),
            KafkaProducer(
                **self.common,
                acks={"all": "all", "1": 1, "0": 0}[acks],
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=5,
                max_request_size=4 << 20,
            ) as producer,
        ):
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [future.get(timeout=30).offset for future in sent]

    @contextmanager
    def assigned(self, topic: str, partitions: Sequence[int], **settings: object) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(
            **self.common, enable_auto_commit=False, auto_offset_reset="none", **settings
        )
        try:
            consumer.assign([TopicPartition(topic, partition) for partition in partitions])
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
        with refusals(), self.assigned(topic, partitions, isolation_level=isolation, **limits) as consumer:
            assigned = consumer.assignment()
            ends = consumer.end_offsets(list(assigned))
            if start is None:
                consumer.seek_to_beginning()
            else:
                for partition in assigned:
                    consumer.seek(partition, start)
            found: list[Record] = []
            while any(consumer.position(partition) < ends[partition] for partition in assigned):
                for messages in consumer.poll(timeout_ms=1000).values():
                    found += [to_record(message) for message in messages]
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        consumer = KafkaConsumer(**self.common, auto_offset_reset=reset, enable_auto_commit=False)
        partition = TopicPartition(topic, 0)
        try:
            consumer.assign([partition])
            consumer.seek(partition, offset)
            for _ in range(100):
                consumer.poll(timeout_ms=100, update_offsets=False)
                if consumer.position(partition) != offset:
                    return int(consumer.position(partition))
        except OffsetOutOfRangeError:
            return None
        finally:
            consumer.close()
        raise AssertionError("the consumer neither moved nor failed")

    def beginning(self, topic: str, partition: int = 0) -> int:
        with refusals(), self.assigned(topic, [partition]) as consumer:
            return int(
                consumer.beginning_offsets(list(consumer.assignment()))[TopicPartition(topic, partition)]
            )

    def end(self, topic: str, partition: int = 0) -> int:
        with refusals(), self.assigned(topic, [partition]) as consumer:
            return int(consumer.end_offsets(list(consumer.assignment()))[TopicPartition(topic, partition)])

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        wanted = TopicPartition(topic, partition)
        with refusals(), self.assigned(topic, [partition]) as consumer:
            found = consumer.offsets_for_times({wanted: timestamp_ms})[wanted]
        return None if found is None else int(found.offset)

    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        assignor = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }[strategy]
        return KafkaPythonMember(
            KafkaConsumer(
                topic,
                **self.common,
                group_id=group,
                group_instance_id=instance_id,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=500,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                partition_assignment_strategy=[assignor],
            )
        )

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> KafkaPythonTransactions:
        return KafkaPythonTransactions(
            KafkaProducer(
                **self.common,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
        )

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        member = self.member(group, source)
        assert isinstance(member, KafkaPythonMember)
        writer = self.transactions(transactional_id)

        def send_offsets() -> None:
            consumer = member.consumer
            offsets = {p: OffsetAndMetadata(consumer.position(p), "", -1) for p in consumer.assignment()}
            with refusals():
                writer.producer.send_offsets_to_transaction(offsets, consumer.group_metadata())

        copy_by(member, writer, send_offsets, target, count=count, commit=commit)

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        with refusals():
            stored = self.admin.list_group_offsets({group: [TopicPartition(topic, partition)]})[group]
        found = stored.get(TopicPartition(topic, partition))
        return None if found is None or found.offset < 0 else int(found.offset)

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        partition = TopicPartition(topic, 0)
        with refusals(), self.assigned(topic, [0], group_id=group) as consumer:
            consumer.commit({partition: OffsetAndMetadata(offset, metadata, -1)})
            return str(consumer.committed(partition, metadata=True).metadata)

    def cluster(self) -> ClusterView:
        with refusals():
            described = self.admin.describe_cluster()
        brokers = frozenset((b["broker_id"], f"{b['host']}:{b['port']}") for b in described["brokers"])
        return ClusterView(described["cluster_id"], described["controller_id"], brokers)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(configs or {}),
        }
        with refusals():
            self.admin.create_topics({name: wanted}, wait_for_metadata=True)

    def topics(self) -> set[str]:
        with refusals():
            return set(self.admin.list_topics())

    def partitions(self, topic: str) -> int:
        with refusals():
            return len(self.admin.describe_topics([topic])[0]["partitions"])

    def delete_topic(self, name: str) -> None:
        with refusals():
            self.admin.delete_topics([name])

    def add_partitions(self, topic: str, total: int) -> None:
        with refusals():
            self.admin.create_partitions({topic: total})

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        with refusals():
            described = self.admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {
            key: (entry["value"], entry["config_source"] == "DEFAULT_CONFIG")
            for key, entry in described.items()
        }

    def set_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        with refusals():
            answer = self.admin.alter_configs([resource])["topic"][topic]
        if answer != "OK":
            code = next(
                (c for c in (40, 44) if for_code(c).__name__ in answer or f"[Error {c}]" in answer), -1
            )
            raise Refused(code, answer)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        with refusals():
            self.admin.delete_records({TopicPartition(topic, partition): before})

    def groups(self) -> set[str]:
        with refusals():
            return {group["group_id"] for group in self.admin.list_groups()}

    def group(self, group: str) -> GroupView:
        with refusals():
            described = self.admin.describe_groups([group])[group]
        return GroupView(described["group_state"], len(described["members"]))

    def delete_group(self, group: str) -> None:
        with refusals():
            answers = dict(self.admin.delete_groups([group]))
        if answers[group] != "OK":
            names = {for_code(code).__name__: code for code in (16, 24, 68, 69)}
            raise Refused(names.get(answers[group], -1), answers[group])

    def delete_offset(self, group: str, topic: str, partition: int = 0) -> None:
        wanted = TopicPartition(topic, partition)
        with refusals():
            answer = self.admin.delete_group_offsets(group, [wanted])[wanted]
        if answer is not NoError:
            raise Refused(answer.errno, answer.__name__)
