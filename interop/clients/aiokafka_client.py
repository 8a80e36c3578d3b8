"""aiokafka: pure Python, asynchronous. Its event loop runs in a thread: scenarios stay synchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from importlib import metadata
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from aiokafka.helpers import create_ssl_context
from aiokafka.structs import OffsetAndMetadata

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

T = TypeVar("T")
TIMEOUT_S = 60.0
STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="aiokafka", daemon=True)
        self.thread.start()

    def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Clients look for the running loop when they are made: hence a function, called in the loop."""

        async def answer() -> T:
            try:
                return await make()
            except KafkaError as error:
                raise Refused(getattr(error, "errno", -1), error) from error

        return asyncio.run_coroutine_threadsafe(answer(), self.loop).result(TIMEOUT_S)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def refuse(code: int, text: object = "") -> None:
    if code:
        raise Refused(code, text)


def to_record(message: Any) -> Record:
    return Record(
        value=message.value,
        key=message.key,
        headers=tuple(message.headers),
        timestamp_ms=message.timestamp,
        partition=message.partition,
        offset=message.offset,
    )


class AiokafkaMember(Member):
    def __init__(self, loop: Loop, consumer: AIOKafkaConsumer) -> None:
        self.loop, self.consumer = loop, consumer

    def poll(self, timeout_s: float) -> list[Record]:
        polled = self.loop.run(lambda: self.consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [to_record(message) for messages in polled.values() for message in messages]

    def assignment(self) -> frozenset[int]:
        return frozenset(partition.partition for partition in self.consumer.assignment())

    def commit(self) -> None:
        self.loop.run(lambda: self.consumer.commit())

    def close(self) -> None:
        # Now and then stop() lets out the cancellation of the consumer's own tasks.
        with suppress(CancelledError):
            self.loop.run(lambda: self.consumer.stop())


class AiokafkaTransactions(Transactions):
    def __init__(self, loop: Loop, producer: AIOKafkaProducer) -> None:
        self.loop, self.producer = loop, producer

    def begin(self) -> None:
        self.loop.run(self.producer.begin_transaction)

    def send(self, topic: str, records: Sequence[Record]) -> None:
        async def send() -> None:
            sent = [await self.producer.send(topic, r.value, partition=r.partition) for r in records]
            for future in sent:
                await future

        self.loop.run(send)

    def commit(self) -> None:
        self.loop.run(self.producer.commit_transaction)

    def abort(self) -> None:
        self.loop.run(self.producer.abort_transaction)

    def close(self) -> None:
        self.loop.run(self.producer.stop)


class BearerTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Asks the issuer for each token."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def token(self) -> str:
        return await asyncio.to_thread(self._login.bearer_token)


def settings_of(login: Login) -> dict[str, Any]:
    certificate = login.certificate or None
    context = create_ssl_context(cafile=login.ca, certfile=certificate, keyfile=certificate)
    settings: dict[str, Any] = {"security_protocol": login.protocol, "ssl_context": context}
    if login.mechanism == OAUTHBEARER:
        settings |= {"sasl_mechanism": OAUTHBEARER, "sasl_oauth_token_provider": BearerTokens(login)}
    elif login.mechanism:
        settings |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.user,
            "sasl_plain_password": login.password,
        }
    return settings


class Aiokafka(Client):
    name = "aiokafka"
    strategies = ("roundrobin", "sticky")
    version = metadata.version("aiokafka")

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        self.loop = Loop()
        #: What every client of this one has.
        self.common = {"bootstrap_servers": bootstrap, **(settings_of(login) if login else {})}

        async def start() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(**self.common)
            await admin.start()
            return admin

        self.admin = self.loop.run(start)

    def close(self) -> None:
        self.loop.run(self.admin.close)
        self.loop.close()

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def send() -> list[int]:
            async with AIOKafkaProducer(
                **self.common,
                acks={"all": "all", "1": 1, "0": 0}[acks],
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=5,
                max_request_size=4 << 20,
            ) as producer:
                sent = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                answers = [await future for future in sent]
            return [-1 if answer is None else answer.offset for answer in answers]

        return self.loop.run(send)

    @asynccontextmanager
    async def assigned(
        self, topic: str, partitions: Sequence[int], **settings: Any
    ) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            **self.common,
            **{"enable_auto_commit": False, "auto_offset_reset": "none", **settings},
        )
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

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

        async def fetch() -> list[Record]:
            found: list[Record] = []
            async with self.assigned(topic, partitions, isolation_level=isolation, **limits) as consumer:
                assigned = list(consumer.assignment())
                ends = await consumer.end_offsets(assigned)
                if start is None:
                    await consumer.seek_to_beginning()
                else:
                    for partition in assigned:
                        consumer.seek(partition, start)
                while any([await consumer.position(p) < ends[p] for p in assigned]):
                    for messages in (await consumer.getmany(timeout_ms=1000)).values():
                        found += [to_record(message) for message in messages]
            return sorted(found, key=lambda record: (record.partition, record.offset))

        return self.loop.run(fetch)

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        partition = TopicPartition(topic, 0)

        async def fetch() -> int | None:
            async with self.assigned(topic, [0], auto_offset_reset=reset) as consumer:
                consumer.seek(partition, offset)
                try:
                    for _ in range(100):
                        for messages in (await consumer.getmany(timeout_ms=100)).values():
                            return int(messages[0].offset)
                        if (position := await consumer.position(partition)) != offset:
                            return int(position)
                except OffsetOutOfRangeError:
                    return None
            raise AssertionError("the consumer neither moved nor failed")

        return self.loop.run(fetch)

    def beginning(self, topic: str, partition: int = 0) -> int:
        async def ask() -> int:
            async with self.assigned(topic, [partition]) as consumer:
                found = await consumer.beginning_offsets(list(consumer.assignment()))
            return int(found[TopicPartition(topic, partition)])

        return self.loop.run(ask)

    def end(self, topic: str, partition: int = 0) -> int:
        async def ask() -> int:
            async with self.assigned(topic, [partition]) as consumer:
                found = await consumer.end_offsets(list(consumer.assignment()))
            return int(found[TopicPartition(topic, partition)])

        return self.loop.run(ask)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        wanted = TopicPartition(topic, partition)

        async def ask() -> int | None:
            async with self.assigned(topic, [partition]) as consumer:
                found = (await consumer.offsets_for_times({wanted: timestamp_ms}))[wanted]
            return None if found is None else int(found.offset)

        return self.loop.run(ask)

    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        async def join() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                topic,
                **self.common,
                group_id=group,
                group_instance_id=instance_id,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=500,
                auto_offset_reset="earliest",
                # Refused by a broker that no longer leads, ListOffsets goes to it again until the client
                # refreshes its metadata: after five minutes by default.
                metadata_max_age_ms=5000,
                enable_auto_commit=False,
                partition_assignment_strategy=(STRATEGIES[strategy],),
            )
            await consumer.start()
            return consumer

        return AiokafkaMember(self.loop, self.loop.run(join))

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> AiokafkaTransactions:
        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                **self.common,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        return AiokafkaTransactions(self.loop, self.loop.run(start))

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        member = self.member(group, source)
        assert isinstance(member, AiokafkaMember)
        writer = self.transactions(transactional_id)

        async def send_offsets() -> None:
            consumer = member.consumer
            offsets = {p: await consumer.position(p) for p in consumer.assignment()}
            await writer.producer.send_offsets_to_transaction(offsets, group)

        copy_by(member, writer, lambda: self.loop.run(send_offsets), target, count=count, commit=commit)

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        wanted = TopicPartition(topic, partition)
        found = self.loop.run(lambda: self.admin.list_consumer_group_offsets(group, partitions=[wanted]))
        offset = found[wanted].offset if wanted in found else -1
        return None if offset < 0 else int(offset)

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        partition = TopicPartition(topic, 0)

        async def commit() -> str:
            async with self.assigned(topic, [0], group_id=group) as consumer:
                await consumer.commit({partition: OffsetAndMetadata(offset, metadata)})
            found = await self.admin.list_consumer_group_offsets(group, partitions=[partition])
            return str(found[partition].metadata)

        return self.loop.run(commit)

    def cluster(self) -> ClusterView:
        described = self.loop.run(self.admin.describe_cluster)
        brokers = frozenset((b["node_id"], f"{b['host']}:{b['port']}") for b in described["brokers"])
        return ClusterView(described["cluster_id"], described["controller_id"], brokers)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        wanted = NewTopic(name, partitions, replication_factor, topic_configs=dict(configs or {}))
        answer = self.loop.run(lambda: self.admin.create_topics([wanted]))
        for _topic, code, *text in answer.topic_errors:
            refuse(code, text)

    def topics(self) -> set[str]:
        return set(self.loop.run(self.admin.list_topics))

    def partitions(self, topic: str) -> int:
        (described,) = self.loop.run(lambda: self.admin.describe_topics([topic]))
        refuse(described["error_code"])
        return len(described["partitions"])

    def delete_topic(self, name: str) -> None:
        answer = self.loop.run(lambda: self.admin.delete_topics([name]))
        for _topic, code, *_ in answer.topic_error_codes:
            refuse(code)

    def add_partitions(self, topic: str, total: int) -> None:
        answer = self.loop.run(lambda: self.admin.create_partitions({topic: NewPartitions(total)}))
        for _topic, code, text, *_ in answer.topic_errors:
            refuse(code, text)

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self.loop.run(lambda: self.admin.describe_configs([resource]))
        ((code, text, _type, _name, entries, *_),) = answer.resources
        refuse(code, text)
        default_config = 5
        return {name: (value, source == default_config) for name, value, _read_only, source, *_ in entries}

    def set_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        (answer,) = self.loop.run(lambda: self.admin.alter_configs([resource]))
        for code, text, *_ in answer.resources:
            refuse(code, text)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        wanted = {TopicPartition(topic, partition): RecordsToDelete(before)}
        self.loop.run(lambda: self.admin.delete_records(wanted))

    def groups(self) -> set[str]:
        return {str(group[0]) for group in self.loop.run(self.admin.list_consumer_groups)}

    def group(self, group: str) -> GroupView:
        (answer,) = self.loop.run(lambda: self.admin.describe_consumer_groups([group]))
        ((code, _group, state, _type, _protocol, members, *_),) = answer.groups
        refuse(code)
        return GroupView(state, len(members))
