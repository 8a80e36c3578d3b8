"""The topics that a replay writes: looked up, created, changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import topic_error
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.spark.replay.fitness import KEYS, PARTITIONS, Topic

_TOPIC = 2
_SET = 0
_BROKERS_DEFAULT = -1


def look(client: Client, names: Iterable[str]) -> dict[str, Topic]:
    """The topics that exist.

    Raises:
        KafkaError: one of them is internal, or cannot be looked at by this client.
    """
    found = {}
    for topic in client.metadata(names).topics:
        name = str(topic.name)
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if topic.error_code:
            raise topic_error(topic.error_code, name)
        if topic.is_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is one of Kafka's own.")
        topic_id = uuid_text(topic.topic_id) if any(topic.topic_id) else ""
        found[name] = Topic(name, topic_id, len(topic.partitions), _configs(client, name))
    return found


def _configs(client: Client, topic: str) -> dict[str, str]:
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=list(KEYS)
    )
    [result] = client.send(DescribeConfigsRequest(resources=[resource])).results
    check(result.error_code, result.error_message)
    return {config.name: config.value for config in result.configs if config.value is not None}


def create(client: Client, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Create a topic, and wait until it can be written to.

    Raises:
        KafkaError: the cluster refuses.
    """
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=_BROKERS_DEFAULT,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    [result] = client.send(CreateTopicsRequest(topics=[wanted]), _controller(client)).topics
    if result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
        check(result.error_code, result.error_message)
    _wait_for(client, name, partitions)


def change(client: Client, name: str, values: Mapping[str, str]) -> None:
    """Set configuration values of a topic; `PARTITIONS` stands for their number.

    Raises:
        KafkaError: the cluster refuses.
    """
    configs = [
        AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in values.items()
        if key != PARTITIONS
    ]
    controller = _controller(client)
    if configs:
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        [answer] = client.send(request, controller).responses
        check(answer.error_code, answer.error_message)
    if PARTITIONS in values:
        topic = CreatePartitionsTopic(name=name, count=int(values[PARTITIONS]), assignments=None)
        added = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
        [result] = client.send(added, controller).results
        check(result.error_code, result.error_message)
        _wait_for(client, name, int(values[PARTITIONS]))


def _wait_for(client: Client, name: str, partitions: int) -> None:
    """Wait until brokers know this many partitions of a topic, which takes them a moment."""
    for is_last in client.attempts():
        try:
            if len(client.topic(name).partitions) >= partitions or is_last:
                return
        except KafkaError as error:
            if is_last or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise


def _controller(client: Client) -> int:
    return int(client.metadata([]).controller_id)
