"""WriteTxnMarkers (API key 27): write the outcome of transactions into partitions led here.

v1 flexible, v2 the transaction's version, which says how strictly its epoch is checked (KIP-1228).
Transaction coordinators send it, and administrators to end a hanging transaction by
`kafka-transactions abort`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.apis.told_changes import REQUESTS, tell
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

Outcome = Mapping[TopicPartition, ErrorCode]
#: By producer id, and by partition.
Outcomes = dict[int, dict[TopicPartition, ErrorCode]]

#: The producer id or epoch that means "none".
NO_PRODUCER = -1


def failed(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    """The answer to a request that failed as a whole."""
    outcomes: Outcomes = {}
    for asked in request.markers:
        if partitions := _partitions(asked):
            outcomes.setdefault(asked.producer_id, {}).update(dict.fromkeys(partitions, error.code))
    return _answer(outcomes)


@handles(
    WriteTxnMarkersRequest,
    versions="1-2",
    needs=[on_cluster(AclOperation.ALTER) | on_cluster(AclOperation.CLUSTER_ACTION)],
    quota=Quota.EXEMPT,
    error_response=failed,
)
async def write_txn_markers(request: WriteTxnMarkersRequest, ctx: RequestContext) -> WriteTxnMarkersResponse:
    """Write each marker into each of its partitions; the answer is grouped by producer."""
    outcomes: Outcomes = {}
    # A marker without a producer cannot be written: Kafka's broker refuses the whole request.
    makes_sense = all(
        NO_PRODUCER not in (asked.producer_id, asked.producer_epoch) for asked in request.markers
    )
    if not makes_sense:
        return failed(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    all_written = await ctx.node.markers.write_all_here(
        [(_marker(asked), _partitions(asked)) for asked in request.markers]
    )
    if not _is_broker(ctx):
        tell(ctx, REQUESTS, "Ended transactions: ", _ended(request, all_written))
    for asked, written in zip(request.markers, all_written, strict=True):
        if written:
            outcomes.setdefault(asked.producer_id, {}).update(written)
    return _answer(outcomes)


def _is_broker(ctx: RequestContext) -> bool:
    """Whether the sender has the client id of a transaction coordinator, this broker's or Apache Kafka's. An
    authorized client could fake it, but has no reason to.
    """
    client_id = ctx.client_id or ""
    return client_id.isdecimal() or client_id.endswith("-txn-marker-sender")


def _ended(request: WriteTxnMarkersRequest, all_written: Iterable[Outcome]) -> Iterator[str]:
    """The changes by an administrator, one per partition."""
    for asked, written in zip(request.markers, all_written, strict=True):
        deed = "committed" if asked.transaction_result else "aborted"
        producer = f"producer {asked.producer_id} with epoch {asked.producer_epoch}"
        for (topic, partition), error in written.items():
            if error is ErrorCode.NONE:
                yield f"{deed} that of {producer} in {topic}-{partition}"


def _marker(asked: WritableTxnMarker) -> Marker:
    return Marker(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_result,
        asked.coordinator_epoch,
        asked.transaction_version,
    )


def _partitions(asked: WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in asked.topics
        for partition in topic.partition_indexes
    ]


def _answer(outcomes: Outcomes) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(written))
            for producer_id, written in outcomes.items()
        ]
    )


def _topics(outcome: dict[TopicPartition, ErrorCode]) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (topic, partition), error in outcome.items():
        if topic not in topics:
            topics[topic] = WritableTxnMarkerTopicResult(name=topic, partitions=[])
        topics[topic].partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=partition, error_code=int(error))
        )
    return list(topics.values())
