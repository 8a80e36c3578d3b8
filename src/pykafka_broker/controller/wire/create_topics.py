"""CreateTopics (API key 19) for topics that brokers create on demand; `apis/create_topics.py` answers it."""

from __future__ import annotations

from pykafka_broker.controller.core.events import CreateTopicResult, CreateTopics, NewTopic
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import ErrorCode, error_of
from pykafka_broker.protocol.messages import create_topics as m


def request(event: CreateTopics, terms: common.Terms) -> m.CreateTopicsRequest:
    """The request of a broker."""
    return m.CreateTopicsRequest(
        topics=[_told_topic(topic) for topic in event.topics],
        timeout_ms=terms.timeout_ms,
        validate_only=event.validate_only,
    )


def read_topic(topic: m.CreatableTopic) -> NewTopic:
    """A topic of a request."""
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
        configs=tuple((config.name, config.value) for config in topic.configs),
    )


def read_response(response: m.CreateTopicsResponse, event: CreateTopics) -> tuple[CreateTopicResult, ...]:
    """A result for each name."""
    answered = {topic.name: _read_result(topic) for topic in response.topics}
    names = dict.fromkeys(topic.name for topic in event.topics)
    return tuple(
        answered.get(name, CreateTopicResult(name, ErrorCode.UNKNOWN_SERVER_ERROR)) for name in names
    )


def _told_topic(topic: NewTopic) -> m.CreatableTopic:
    return m.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            m.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.assignments
        ],
        configs=[m.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


def _read_result(topic: m.CreatableTopicResult) -> CreateTopicResult:
    return CreateTopicResult(
        topic.name,
        error_of(topic.error_code),
        topic.error_message,
        topic.topic_id,
        topic.num_partitions,
        topic.replication_factor,
    )
