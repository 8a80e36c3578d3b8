"""The log of a topic, as its brokers serve it: where it begins and ends, and what stands at an offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import leaders_of, topic_error
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.client.offsets import EARLIEST, LATEST, list_offsets
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.spark.audit.explaining import LoggedBatch, Stretch
from pykafka_broker.spark.checkpoint.topics import printed_id

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FETCH_BYTES = 8 * 1024 * 1024
_WAIT_MS = 500
_TOPIC, _CLEANUP_POLICY = 2, "cleanup.policy"


class TopicLog:
    """A topic, asked through one client.

    Attributes:
        topic_id: As Kafka's tools print it; "" from brokers before Kafka 2.8.
        is_compacted: Whether compaction removes records; False also where the broker does not tell.
    """

    def __init__(self, client: Client, topic: str, isolation_level: int = READ_COMMITTED) -> None:
        """Ask where the topic is.

        Args:
            client: Of the cluster.
            topic: Its name.
            isolation_level: That of the reader whose records are audited.

        Raises:
            KafkaError: there is no such topic.
            ConnectionError: no broker answers.
        """
        self._client = client
        self._topic = topic
        self._isolation_level = isolation_level
        found = client.topic(topic)
        self._id = found.topic_id
        self._partitions = [(topic, partition) for partition in leaders_of(found)]
        self.topic_id = printed_id(found.topic_id)
        self.is_compacted = "compact" in self._cleanup_policy()

    def starts(self) -> dict[int, int]:
        """Where each partition begins now."""
        return self._look_up(EARLIEST)

    def ends(self) -> dict[int, int]:
        """Where each partition ends now, for a reader of this isolation level."""
        return self._look_up(LATEST)

    def reader(self, partition: int) -> Callable[[int], Stretch]:
        """A function that reads a partition's log from an offset on."""
        return lambda offset: self._read(partition, offset)

    def _look_up(self, time: int) -> dict[int, int]:
        asked = dict.fromkeys(self._partitions, time)
        found: Mapping[tuple[str, int], int] = list_offsets(
            self._client, asked, isolation_level=self._isolation_level if time == LATEST else READ_UNCOMMITTED
        )
        return {partition: offset for (_, partition), offset in found.items()}

    def _cleanup_policy(self) -> str:
        resource = DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=self._topic, configuration_keys=[_CLEANUP_POLICY]
        )
        [result] = self._client.send(DescribeConfigsRequest(resources=[resource])).results
        return next((entry.value or "" for entry in result.configs if entry.name == _CLEANUP_POLICY), "")

    def _read(self, partition: int, offset: int) -> Stretch:
        """What a fetch from an offset on brings.

        Raises:
            KafkaError: the partition cannot be read there, or a quota holds back its records.
        """
        for is_last in self._client.attempts():
            response = self._fetch(partition, offset)
            answer: PartitionData = response.responses[0].partitions[0]
            error_code = answer.error_code
            if not (error_code or answer.records) and response.throttle_time_ms:
                # Apache Kafka answers without records where a quota is exceeded.
                error_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
            if not error_code:
                return stretch_of(answer, offset)
            if is_last or error_code not in RETRIABLE | {ErrorCode.THROTTLING_QUOTA_EXCEEDED}:
                raise topic_error(error_code, f"{self._topic}-{partition}")
        raise AssertionError("attempts end with a last one")

    def _fetch(self, partition: int, offset: int) -> FetchResponse:
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation_level,
            topics=[
                FetchTopic(
                    topic=self._topic,
                    topic_id=self._id,
                    partitions=[
                        FetchPartition(
                            partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
                        )
                    ],
                )
            ],
        )
        response: FetchResponse = self._client.send(request, self._client.leaders(self._topic)[partition])
        check(response.error_code)
        return response


def stretch_of(answer: PartitionData, offset: int) -> Stretch:
    """The batches of an answer; aborted ones are known only to readers of committed records.

    Raises:
        KafkaError: the answer does not consist of batches.
    """
    aborted = AbortedTransactions(
        (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
    )
    data = memoryview(answer.records or b"")
    batches = []
    for at, header in iter_batches(data):
        batch = data[at : at + header.size_in_bytes]
        batches.append(LoggedBatch(header, batch, aborted.hides(header, batch)))
    return Stretch(offset, batches[-1].header.next_offset if batches else offset, batches)
