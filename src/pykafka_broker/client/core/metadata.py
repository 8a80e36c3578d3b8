"""The brokers of a cluster, its topics, and the leaders of their partitions, from Metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.conversation import Ask, Conversation
from pykafka_broker.client.core.retries import RETRIABLE, Attempt, next_attempt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

#: What Metadata has in the place of a leader.
NO_LEADER = -1


class Brokers:
    """The addresses of the brokers, as in the last response."""

    __slots__ = ("addresses",)

    def __init__(self) -> None:
        self.addresses: dict[int, Address] = {}

    def replace(self, response: MetadataResponse) -> None:
        """Take the brokers of a response, which lists all of them."""
        self.addresses = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}

    def add(self, node_id: int, address: Address) -> None:
        """Take the address of one broker, which another response names."""
        self.addresses[node_id] = address


def fetch_metadata(
    brokers: Brokers, topics: Iterable[str] | None, *, auto_create: bool = False
) -> Conversation[MetadataResponse]:
    """Ask for the metadata of these topics; of all of them, if None."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    reply = yield Ask(MetadataRequest(topics=asked, allow_auto_topic_creation=auto_create))
    response: MetadataResponse = reply.response
    brokers.replace(response)
    return response


def find_broker(brokers: Brokers, node_id: int) -> Conversation[Address]:
    """The address of a broker.

    Raises:
        KafkaError: BROKER_NOT_AVAILABLE, the cluster does not know it.
    """
    if node_id not in brokers.addresses:
        yield from fetch_metadata(brokers, [])
    if node_id not in brokers.addresses:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {node_id} is not available.")
    return brokers.addresses[node_id]


def find_topic(
    brokers: Brokers,
    name: str,
    attempt: Attempt,
    *,
    led: Collection[int] | None = None,
    auto_create: bool = False,
) -> Conversation[MetadataResponseTopic]:
    """A topic's metadata, once those of its partitions that are in `led` have a leader; None: all of them.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, there is no such topic; or the error of the last answer.
    """
    while True:
        [topic] = (yield from fetch_metadata(brokers, [name], auto_create=auto_create)).topics
        code = code_of(topic, led)
        if not code:
            return topic
        is_being_created = auto_create and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if attempt.is_last or not (code in RETRIABLE or is_being_created):
            raise topic_error(code, name)
        attempt = yield from next_attempt(attempt)


def code_of(topic: MetadataResponseTopic, led: Collection[int] | None = None) -> int:
    """A topic's error, else the first error of a partition in `led` (None: of any), else 0."""
    errors = (p.error_code for p in topic.partitions if led is None or p.partition_index in led)
    return topic.error_code or next(filter(None, errors), 0)


def leaders_of(topic: MetadataResponseTopic) -> dict[int, int]:
    """Partition -> the broker that leads it, `NO_LEADER` if none does, in the order of the partitions."""
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return {partition.partition_index: partition.leader_id for partition in partitions}


def topic_error(code: int, name: str) -> KafkaError:
    """The error of a topic, with the topic's name in its text."""
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(error_of(code), f"Topic '{name}' does not exist.")
    return KafkaError(error_of(code), f"Topic '{name}': {error_of(code).message}")


def partition_error(code: int, topic: str, partition: int) -> KafkaError:
    """The error of a partition of a topic that exists, with both in its text."""
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(error_of(code), f"Topic '{topic}' has no partition {partition}.")
    return KafkaError(error_of(code), f"{topic}-{partition}: {error_of(code).message}")
