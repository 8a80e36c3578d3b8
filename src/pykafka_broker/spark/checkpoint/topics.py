"""The topics of a checkpoint, as the cluster describes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import leaders_of, topic_error
from pykafka_broker.client.offsets import EARLIEST, LATEST, list_offsets
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.metadata import MetadataResponseTopic
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple


class Range(NamedTuple):
    """The offsets of a partition: from `log_start` up to, and without, `log_end`."""

    log_start: int
    log_end: int


class Topic(NamedTuple):
    """A topic as it is now; without an id from brokers before Kafka 2.8."""

    topic_id: str
    partitions: Mapping[int, Range]


def look(client: Client, names: Collection[str]) -> dict[str, Topic]:
    """Those of the topics that exist.

    Raises:
        KafkaError: one of them cannot be read now, or not by this client.
    """
    found = {}
    for topic in _existing(client, names):
        partitions = [(str(topic.name), number) for number in leaders_of(topic)]
        first = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
        end = list_offsets(client, dict.fromkeys(partitions, LATEST))
        ranges = {p[1]: Range(first[p], end[p]) for p in partitions}
        found[str(topic.name)] = Topic(printed_id(topic.topic_id), ranges)
    return found


def topic_ids(client: Client, names: Collection[str]) -> dict[str, str]:
    """The ids of those of the topics that exist; raises the errors of `look`."""
    return {str(topic.name): printed_id(topic.topic_id) for topic in _existing(client, names)}


def _existing(client: Client, names: Collection[str]) -> Iterator[MetadataResponseTopic]:
    for topic in client.metadata(names).topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if topic.error_code:
            raise topic_error(topic.error_code, str(topic.name))
        yield topic


def printed_id(topic_id: bytes) -> str:
    """An id as Kafka's tools print it; "" from a broker without topic ids."""
    return uuid_text(topic_id) if any(topic_id) else ""


def first_since(
    client: Client, partitions: Collection[PartitionKey], since_ms: int
) -> dict[PartitionKey, int]:
    """The first offset at or after a time, of partitions that have one."""
    found = list_offsets(client, dict.fromkeys(partitions, since_ms), missing_ok=True)
    return {partition: offset for partition, offset in found.items() if offset >= 0}
