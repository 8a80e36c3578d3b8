"""The high watermarks of partitions, from their leaders: this node and others.

Other leaders are asked with ListOffsets. As in Apache Kafka's `NetworkPartitionMetadataClient`, a leader that
does not answer is asked five more times, after pauses that grow from 2 seconds; other errors are final.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.cluster.image import NO_LEADER
from pykafka_broker.coordinator.broker_queues import Brokers
from pykafka_broker.coordinator.partition_work import pause
from pykafka_broker.coordinator.ports import LedPartitions, Metadata
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.topic_partition import PartitionKey

logger = logging.getLogger("kafka.server.util.NetworkPartitionMetadataClient")

RETRIES = 5
PAUSES = Backoff(first_ms=2_000, greatest_ms=30_000)
#: The timestamp that asks for the end offset, and the replica id of a consumer.
LATEST, CONSUMER = -1, -1
NO_OFFSET = -1

Ends = dict[PartitionKey, tuple[ErrorCode, int]]


class EndOffsets:
    """Event loop only."""

    def __init__(
        self,
        node_id: int,
        metadata: Metadata,
        here: LedPartitions,
        elsewhere: Brokers,
        scheduler: Scheduler,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._here = here
        self._elsewhere = elsewhere
        self._scheduler = scheduler

    async def latest(
        self, partitions: Iterable[PartitionKey]
    ) -> Mapping[PartitionKey, tuple[ErrorCode, int]]:
        """The error and the high watermark of each (topic, partition); -1 with an error."""
        image = self._metadata.image
        by_leader: dict[int, list[PartitionKey]] = {}
        for place in partitions:
            leader = image.leader_of(*place)
            if leader != self._node_id and not self._elsewhere.is_reachable(leader):
                leader = NO_LEADER
            by_leader.setdefault(leader, []).append(place)
        ends = _all_with(ErrorCode.LEADER_NOT_AVAILABLE, by_leader.pop(NO_LEADER, ()))
        ends.update((place, self._end_here(*place)) for place in by_leader.pop(self._node_id, ()))
        for told in await asyncio.gather(
            *(self._ends_at(leader, places) for leader, places in by_leader.items())
        ):
            ends.update(told)
        return ends

    def _end_here(self, topic: str, partition: int) -> tuple[ErrorCode, int]:
        led = self._here.led(topic, partition)
        if led is None:
            return self._here.why_not_led(topic, partition), NO_OFFSET
        if not led.is_end_known:
            return ErrorCode.OFFSET_NOT_AVAILABLE, NO_OFFSET
        return ErrorCode.NONE, led.log.state.high_watermark

    async def _ends_at(self, leader: int, places: Sequence[PartitionKey]) -> Ends:
        failures = 0
        while True:
            try:
                response: ListOffsetsResponse = await self._elsewhere.ask(leader, _request(places))
            except KafkaError as error:
                logger.error("Broker %d cannot be asked where partitions end: %s", leader, error)
                return _all_with(ErrorCode.UNKNOWN_SERVER_ERROR, places)
            except (OSError, ProtocolError) as error:
                if failures == RETRIES:
                    logger.error("No answer of broker %d to where partitions end: %s", leader, error)
                    return _all_with(_code_of(error), places)
                await pause(self._scheduler, PAUSES.pause_ms(failures))
                failures += 1
            else:
                told = _told(response)
                left_out = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_OFFSET)
                return {place: told.get(place, left_out) for place in places}


def _code_of(error: OSError | ProtocolError) -> ErrorCode:
    is_late = isinstance(error, TimeoutError)
    return ErrorCode.REQUEST_TIMED_OUT if is_late else ErrorCode.NETWORK_EXCEPTION


def _all_with(error: ErrorCode, places: Iterable[PartitionKey]) -> Ends:
    return dict.fromkeys(places, (error, NO_OFFSET))


def _told(response: ListOffsetsResponse) -> Ends:
    return {
        (topic.name, each.partition_index): (error_of(each.error_code), each.offset)
        for topic in response.topics
        for each in topic.partitions
    }


def _request(places: Iterable[PartitionKey]) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, partition in places:
        asked = topics.setdefault(topic, ListOffsetsTopic(name=topic, partitions=[]))
        asked.partitions.append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    return ListOffsetsRequest(replica_id=CONSUMER, topics=list(topics.values()))
