"""WriteTxnMarkers (API key 27): between brokers, write commit and abort markers into partitions.

v1 is the oldest served (flexible); v2 the transaction version, which says how strictly the epoch is checked.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, i64, message, string


@message()
class WritableTxnMarkerTopic:
    name: str = string(entity="topic_name")
    partition_indexes: list[int] = array(i32())


@message()
class WritableTxnMarker:
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = i32()
    transaction_version: int = i8("2+", default=0)


@message(api_key=27, versions="1-2", flexible="1+", listeners="broker")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@message()
class WritableTxnMarkerPartitionResult:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class WritableTxnMarkerTopicResult:
    name: str = string(entity="topic_name")
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@message()
class WritableTxnMarkerResult:
    producer_id: int = i64(entity="producer_id")
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message(api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
