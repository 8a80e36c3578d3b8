"""Writes transaction markers into partitions that other brokers lead, with WriteTxnMarkers.

Each broker gets one request at a time, with the markers of all transactions that came meanwhile. A broker
answers when its partitions have committed the markers, or cannot take them. Retries are made in
`marker_work.py`, with the leaders at that time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.coordinator.broker_queues import BrokerQueues, Brokers
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

Outcome = Mapping[TopicPartition, ErrorCode]


class _ToWrite(NamedTuple):
    """A marker, and the partitions of one broker to write it to."""

    marker: Marker
    partitions: tuple[TopicPartition, ...]

    def all_with(self, error: ErrorCode) -> Outcome:
        """The same error for each partition."""
        return dict.fromkeys(self.partitions, error)


class RemoteMarkers:
    """Event loop only."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        # The answer names producers, so a request has each producer only once.
        self._queues: BrokerQueues[_ToWrite, Outcome] = BrokerQueues(
            self._exchange, lambda each: each.marker.producer_id
        )

    async def write(self, broker_id: int, marker: Marker, partitions: Iterable[TopicPartition]) -> Outcome:
        """Let a broker write `marker` into partitions that it leads; the outcome of each partition."""
        to_write = _ToWrite(marker, tuple(partitions))
        if not self._brokers.is_reachable(broker_id):
            return to_write.all_with(ErrorCode.BROKER_NOT_AVAILABLE)
        try:
            return await self._queues.ask(broker_id, to_write)
        except KafkaError as error:
            return to_write.all_with(error.code)

    async def _exchange(self, broker_id: int, all_to_write: Sequence[_ToWrite]) -> Sequence[Outcome]:
        try:
            response: WriteTxnMarkersResponse = await self._brokers.ask(broker_id, _request(all_to_write))
        except KafkaError as error:
            logger.error("Transaction markers cannot be sent to broker %d: %s", broker_id, error)
            return [each.all_with(error.code) for each in all_to_write]
        except (OSError, ProtocolError) as error:
            logger.debug("No answer of broker %d about transaction markers: %s", broker_id, error)
            return [each.all_with(ErrorCode.NETWORK_EXCEPTION) for each in all_to_write]
        by_producer = {
            answer.producer_id: {
                TopicPartition(topic.name, partition.partition_index): partition.error_code
                for topic in answer.topics
                for partition in topic.partitions
            }
            for answer in response.markers
        }
        return [_outcome(each, by_producer.get(each.marker.producer_id, {})) for each in all_to_write]


def _outcome(to_write: _ToWrite, codes: Mapping[TopicPartition, int]) -> Outcome:
    """The answer about each partition; one that the broker leaves out counts as failed."""
    return {
        place: error_of(codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)) for place in to_write.partitions
    }


def _request(all_to_write: Iterable[_ToWrite]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.commit,
                topics=_topics(partitions),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker, partitions in all_to_write
        ]
    )


def _topics(partitions: Iterable[TopicPartition]) -> list[WritableTxnMarkerTopic]:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for topic, partition in partitions:
        if topic not in topics:
            topics[topic] = WritableTxnMarkerTopic(name=topic, partition_indexes=[])
        topics[topic].partition_indexes.append(partition)
    return list(topics.values())
