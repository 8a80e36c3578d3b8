"""Families of BrokerTopicMetrics: what is written to topics, and read from them (`topic_counts.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.replication.topic_counts import TopicCounts

_PREFIX = "kafka_server_brokertopicmetrics_"


def _total(node: NodeParts) -> TopicCounts | None:
    return None if node.broker is None else node.broker.replicas.counts.total()


def _counter(name: str, mbean: str, meaning: str, count: Callable[[TopicCounts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        broker, total = scrape.node.broker, scrape.once(_total)
        if broker is None or total is None:
            return
        yield "", count(total)
        for topic, counts in list(broker.replicas.counts.topics.items()):
            yield labelled(topic=topic), count(counts)

    bean = f"kafka.server:type=BrokerTopicMetrics,name={mbean},topic=*, Count"
    return Family(f"{_PREFIX}{name}_total", "counter", "topic", meaning, bean, read)


def _sum(name: str, mbean: str, meaning: str, count: Callable[[TopicCounts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        total = scrape.once(_total)
        if total is not None:
            yield "", count(total)

    bean = f"kafka.server:type=BrokerTopicMetrics,name={mbean}, Count"
    return Family(f"{_PREFIX}{name}_total", "counter", "", meaning, bean, read)


FAMILIES = (
    _counter(
        "messagesin",
        "MessagesInPerSec",
        "Records that clients and coordinators have appended here; without a label, to all topics.",
        lambda counts: counts.messages_in,
    ),
    _counter(
        "bytesin", "BytesInPerSec", "Bytes of their batches, as they came.", lambda counts: counts.bytes_in
    ),
    _counter(
        "bytesout", "BytesOutPerSec", "Bytes of batches sent to consumers.", lambda counts: counts.bytes_out
    ),
    _counter(
        "bytesrejected",
        "BytesRejectedPerSec",
        "Bytes of batches refused for their size.",
        lambda counts: counts.bytes_rejected,
    ),
    _counter(
        "totalproducerequests",
        "TotalProduceRequestsPerSec",
        "Produce requests, once for each partition in them; and writes of coordinators.",
        lambda counts: counts.produce_requests,
    ),
    _counter(
        "failedproducerequests",
        "FailedProduceRequestsPerSec",
        "Those of them that failed, without the errors that a producer causes or mends itself.",
        lambda counts: counts.failed_produce_requests,
    ),
    _counter(
        "totalfetchrequests",
        "TotalFetchRequestsPerSec",
        "Reads of partitions for fetches; a partition without news since the last read is not read again.",
        lambda counts: counts.fetch_requests,
    ),
    _counter(
        "failedfetchrequests",
        "FailedFetchRequestsPerSec",
        "Those of them that failed for a reason that no client expects.",
        lambda counts: counts.failed_fetch_requests,
    ),
    _counter(
        "totalsharefetchrequests",
        "TotalShareFetchRequestsPerSec",
        "Share fetches, once for each topic in them.",
        lambda counts: counts.share_fetch_requests,
    ),
    _counter(
        "failedsharefetchrequests",
        "FailedShareFetchRequestsPerSec",
        "Those of them with an error in a partition of the topic.",
        lambda counts: counts.failed_share_fetch_requests,
    ),
    _sum(
        "invalidmessagecrcrecords",
        "InvalidMessageCrcRecordsPerSec",
        "Batches refused because their checksum is wrong.",
        lambda counts: counts.wrong_checksums,
    ),
    _sum(
        "invalidoffsetorsequencerecords",
        "InvalidOffsetOrSequenceRecordsPerSec",
        "Batches refused because offsets, count or sequence in their headers are wrong.",
        lambda counts: counts.invalid_offsets,
    ),
    _sum(
        "nokeycompactedtopicrecords",
        "NoKeyCompactedTopicRecordsPerSec",
        "Records without a key that compacted topics refused.",
        lambda counts: counts.keyless_records,
    ),
    _sum(
        "replicationbytesin",
        "ReplicationBytesInPerSec",
        "Bytes of batches copied from leaders.",
        lambda counts: counts.replication_bytes_in,
    ),
    _sum(
        "replicationbytesout",
        "ReplicationBytesOutPerSec",
        "Bytes of batches sent to followers.",
        lambda counts: counts.replication_bytes_out,
    ),
    _sum(
        "reassignmentbytesin",
        "ReassignmentBytesInPerSec",
        "Bytes of batches copied from leaders because a reassignment adds this replica.",
        lambda counts: counts.reassignment_bytes_in,
    ),
    _sum(
        "reassignmentbytesout",
        "ReassignmentBytesOutPerSec",
        "Bytes of batches sent to replicas that a reassignment adds.",
        lambda counts: counts.reassignment_bytes_out,
    ),
)
