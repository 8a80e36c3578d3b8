"""A client for tests: one connection to a broker, and short calls for the common requests.

    async with await User.connect("127.0.0.1:9092") as user:
        await user.create_topic("orders", partitions=3)
        await user.produce("orders", b"one", b"two")
        assert await user.values("orders") == [b"one", b"two"]

Its methods raise AssertionError with the error code where the broker refuses; those named `try_to` return the
code. `send` takes any request of `pykafka_broker.protocol.messages`; `write` and `read` are its halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLContext
from typing import Any, Self

from pykafka_broker.client.aio import FrameStream
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import read_response, request_frame
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID, api_key_of
from pykafka_broker.protocol.messages import create_topics as creation
from pykafka_broker.protocol.messages import delete_topics as deletion
from pykafka_broker.protocol.messages import describe_configs as describing
from pykafka_broker.protocol.messages import fetch as fetching
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import incremental_alter_configs as altering
from pykafka_broker.protocol.messages import init_producer_id as producer_ids
from pykafka_broker.protocol.messages import list_offsets as listing
from pykafka_broker.protocol.messages import metadata as describing_topics
from pykafka_broker.protocol.messages import offset_commit as committing
from pykafka_broker.protocol.messages import offset_fetch as offset_fetching
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.records.batch import BatchFields, Record, build_batch, iter_batches, read_records
from pykafka_broker.testing.clock import NOW

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
SET, DELETE = 0, 1
EARLIEST, LATEST = -2, -1


class User:
    """One connection to a broker; `connect` makes one. Use it with `async with`, or call `close`."""

    def __init__(self, stream: FrameStream, client_id: str | None) -> None:
        self._stream = stream
        self._client_id = client_id
        self._correlation_id = 0
        #: The correlation id of the answer that was read last.
        self.last_correlation_id = 0

    @classmethod
    async def connect(
        cls, address: str, client_id: str | None = "test-client", tls: SSLContext | None = None
    ) -> Self:
        """Connect to "host:port", with TLS if a context is given. Raises OSError."""
        context = None if tls is None else lambda: tls
        return cls(await FrameStream.open(parse_address(address), context), client_id)

    async def close(self) -> None:
        """Close the connection and wait until it is gone."""
        await self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- requests and answers ---------------------------------------------------------------------

    async def send(self, request: object, version: int) -> Any:
        """Send `request` and wait for its answer. Raises ConnectionError if the connection ends before."""
        correlation_id = self.write(request, version)
        answer = await self.read(api_key_of(request), version)
        assert self.last_correlation_id == correlation_id
        return answer

    def write(self, request: object, version: int) -> int:
        """Send `request` without waiting; return its correlation id."""
        self._correlation_id += 1
        self.write_bytes(request_frame(request, version, self._correlation_id, self._client_id))
        return self._correlation_id

    def write_bytes(self, data: bytes) -> None:
        """Send bytes that need not be a request."""
        self._stream.write(data)

    async def read(self, api_key: int, version: int) -> Any:
        """The next answer, as the response message of `api_key`."""
        answer = read_response(api_key, version, await self.read_frame())
        self.last_correlation_id = answer.correlation_id
        return answer.message

    async def read_frame(self) -> Buffer:
        """The next answer, header and all, without its length."""
        return await self._stream.receive()

    async def is_closed(self) -> bool:
        """Wait until the broker answers or closes the connection; return whether it closed it."""
        try:
            await self.read_frame()
        except ConnectionError:
            return True
        return False

    # --- topics -----------------------------------------------------------------------------------

    async def try_to_create_topic(self, name: str, partitions: int = 1, **configs: str) -> ErrorCode:
        """Create a topic; keys of `configs` have _ for dots. The code of the answer."""
        return ErrorCode((await self._create_topic(name, partitions, configs)).error_code)

    async def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic, and return its id."""
        created = await self._create_topic(name, partitions, configs)
        assert ErrorCode(created.error_code) == ErrorCode.NONE
        return created.topic_id

    async def _create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str]
    ) -> creation.CreatableTopicResult:
        wanted = [
            creation.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = creation.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=wanted
        )
        answer: creation.CreateTopicsResponse = await self.send(
            creation.CreateTopicsRequest(topics=[topic]), 7
        )
        return answer.topics[0]

    async def delete_topic(self, name: str) -> None:
        """Delete a topic by its name."""
        topic = deletion.DeleteTopicState(name=name, topic_id=ZERO_UUID)
        answer = await self.send(deletion.DeleteTopicsRequest(topics=[topic], timeout_ms=10_000), 6)
        assert ErrorCode(answer.responses[0].error_code) == ErrorCode.NONE

    async def metadata(self, *names: str) -> describing_topics.MetadataResponse:
        """The Metadata answer about these topics; about all without names."""
        topics = [describing_topics.MetadataRequestTopic(name=name) for name in names] or None
        request = describing_topics.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer: describing_topics.MetadataResponse = await self.send(request, 13)
        return answer

    async def topics(self) -> dict[str, bytes]:
        """Names and ids of all topics that are not internal."""
        answer = await self.metadata()
        return {topic.name or "": topic.topic_id for topic in answer.topics if not topic.is_internal}

    # --- records ----------------------------------------------------------------------------------

    async def try_to_produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        timestamp: int = NOW,
        acks: int = -1,
        timeout_ms: int = 10_000,
        **batch: Any,
    ) -> producing.PartitionProduceResponse:
        """Produce one batch; the partition's part of the answer. `batch` are `BatchFields`."""
        records = build_batch([(timestamp, None, value, ()) for value in values], BatchFields(**batch))
        data = producing.PartitionProduceData(index=partition, records=records)
        request = producing.ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[producing.TopicProduceData(name=topic, partition_data=[data])],
        )
        answer: producing.ProduceResponse = await self.send(request, 12)
        return answer.responses[0].partition_responses[0]

    async def produce(self, topic: str, *values: bytes, **details: Any) -> int:
        """Produce one batch, with the details of `try_to_produce`; its first offset."""
        answer = await self.try_to_produce(topic, *values, **details)
        assert ErrorCode(answer.error_code) == ErrorCode.NONE
        return answer.base_offset

    async def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        topic_id: bytes | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
    ) -> fetching.PartitionData:
        """Fetch without a session; return the partition's part of the answer."""
        request = fetch_request(topic, offset, partition, topic_id, max_wait_ms, min_bytes)
        answer: fetching.FetchResponse = await self.send(request, 12 if topic_id is None else 18)
        return answer.responses[0].partitions[0]

    async def records(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[Record]:
        """All records of a partition from `offset` on."""
        found: list[Record] = []
        while True:
            answer = await self.fetch(topic, offset, partition=partition)
            assert ErrorCode(answer.error_code) == ErrorCode.NONE
            data = bytes(answer.records or b"")
            for position, header in iter_batches(data):
                # A fetch in the middle of a batch is answered with the whole batch.
                batch = read_records(data[position : position + header.size_in_bytes])
                found += [record for record in batch if record.offset >= offset]
                offset = header.next_offset
            if offset >= answer.high_watermark or not data:
                return found

    async def values(self, topic: str, *, partition: int = 0) -> list[bytes | None]:
        """The values of all records of a partition."""
        start = await self.offset_for(topic, EARLIEST, partition=partition)
        records = await self.records(topic, partition=partition, offset=start)
        return [None if record.value is None else bytes(record.value) for record in records]

    async def offset_for(self, topic: str, timestamp: int, *, partition: int = 0) -> int:
        """ListOffsets: the offset for a timestamp, EARLIEST or LATEST."""
        wanted = listing.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        asked = listing.ListOffsetsTopic(name=topic, partitions=[wanted])
        answer = await self.send(listing.ListOffsetsRequest(replica_id=-1, topics=[asked]), 7)
        found = answer.topics[0].partitions[0]
        assert ErrorCode(found.error_code) == ErrorCode.NONE
        offset: int = found.offset
        return offset

    async def new_producer_id(self) -> int:
        """A producer id without a transactional id."""
        request = producer_ids.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        answer = await self.send(request, 4)
        assert ErrorCode(answer.error_code) == ErrorCode.NONE
        producer_id: int = answer.producer_id
        return producer_id

    # --- groups -----------------------------------------------------------------------------------

    async def find_coordinator(self, group: str) -> None:
        """Look for a group's coordinator, which makes `__consumer_offsets` exist."""
        answer = await self.send(finding.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)
        assert ErrorCode(answer.coordinators[0].error_code) == ErrorCode.NONE

    async def try_to_commit(
        self, group: str, topic: str, offset: int, *, partition: int = 0, metadata: str | None = None
    ) -> ErrorCode:
        """Commit as a client without membership; the code of the answer."""
        committed = committing.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics = [committing.OffsetCommitRequestTopic(name=topic, partitions=[committed])]
        request = committing.OffsetCommitRequest(group_id=group, member_id="", topics=topics)
        answer = await self.send(request, 9)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def commit(self, group: str, topic: str, offset: int, **details: Any) -> None:
        """Find the coordinator and commit."""
        await self.find_coordinator(group)
        assert await self.try_to_commit(group, topic, offset, **details) == ErrorCode.NONE

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """All committed offsets of a group."""
        asked = offset_fetching.OffsetFetchRequestGroup(group_id=group, topics=None)
        answer = await self.send(offset_fetching.OffsetFetchRequest(groups=[asked]), 8)
        [found] = answer.groups
        assert ErrorCode(found.error_code) == ErrorCode.NONE
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in found.topics
            for partition in topic.partitions
        }

    # --- configs ----------------------------------------------------------------------------------

    async def try_to_alter(self, resource_type: int, name: str, **configs: str | None) -> ErrorCode:
        """Set configs, or delete those that are None; keys have _ for dots. The code of the answer."""
        changes = [
            altering.AlterableConfig(
                name=key.replace("_", "."), config_operation=DELETE if value is None else SET, value=value
            )
            for key, value in configs.items()
        ]
        resource = altering.AlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=changes
        )
        request = altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer = await self.send(request, 1)
        return ErrorCode(answer.responses[0].error_code)

    async def alter_topic(self, name: str, **configs: str | None) -> None:
        """Set or delete configs of a topic, as `try_to_alter` does."""
        assert await self.try_to_alter(TOPIC_RESOURCE, name, **configs) == ErrorCode.NONE

    async def alter_broker(self, node_id: int | None = None, **configs: str | None) -> None:
        """Alter a broker's dynamic configs; all brokers' without `node_id`."""
        name = "" if node_id is None else str(node_id)
        assert await self.try_to_alter(BROKER_RESOURCE, name, **configs) == ErrorCode.NONE

    async def config(self, resource_type: int, name: str, key: str) -> str | None:
        """The value in force of one config."""
        resource = describing.DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=[key]
        )
        answer = await self.send(describing.DescribeConfigsRequest(resources=[resource]), 4)
        value: str | None = answer.results[0].configs[0].value
        return value


def fetch_request(
    topic: str,
    offset: int = 0,
    partition: int = 0,
    topic_id: bytes | None = None,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
) -> fetching.FetchRequest:
    """A fetch of one partition without a session: version 12 by name, 13 and later by id."""
    wanted = fetching.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    by_name = {"topic": topic} if topic_id is None else {"topic_id": topic_id}
    return fetching.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[fetching.FetchTopic(**by_name, partitions=[wanted])],
    )
