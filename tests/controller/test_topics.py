"""Topics: what Apache Kafka 4.3.1 answers, word for word, and what it records."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.events import (
    CreatePartitions,
    CreatePartitionsResult,
    CreateTopicResult,
    CreateTopics,
    DeleteTopicResult,
    DeleteTopics,
    EventError,
    NewPartitions,
    NewTopic,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import a_cluster, an_empty_cluster, decide, directory, fence, register, uuid

ORDERS = NewTopic("orders", uuid(100))
ZERO = bytes(16)


def created(state: ControllerState, *topics: NewTopic) -> ControllerState:
    state, _, results = decide(state, CreateTopics(topics))
    assert all(result.error is ErrorCode.NONE for result in results), results
    return state


def test_a_new_topic_is_a_topic_record_its_configs_and_its_partitions_in_one_batch() -> None:
    topic = ORDERS._replace(num_partitions=2, configs=(("retention.ms", "5"),))

    state, records, results = decide(a_cluster(1), CreateTopics((topic,)))

    partition = m.PartitionRecord(
        partition_id=0,
        topic_id=uuid(100),
        replicas=[1],
        isr=[1],
        removing_replicas=[],
        adding_replicas=[],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory(1)],
    )
    second = m.PartitionRecord(
        partition_id=1,
        topic_id=uuid(100),
        replicas=[1],
        isr=[1],
        removing_replicas=[],
        adding_replicas=[],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory(1)],
    )
    assert records == (
        m.TopicRecord(name="orders", topic_id=uuid(100)),
        m.ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name="orders", name="retention.ms", value="5"
        ),
        partition,
        second,
    )
    assert results == (
        CreateTopicResult("orders", topic_id=uuid(100), num_partitions=2, replication_factor=1),
    )
    assert state.image.topic_by_id(uuid(100)) is state.image.topics["orders"]


def test_what_is_left_open_comes_from_the_broker() -> None:
    state = a_cluster(1, 2, default_partitions=3, default_replication_factor=2)

    _, _, [result] = decide(state, CreateTopics((ORDERS,)))

    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_validate_only_answers_as_if_and_records_nothing() -> None:
    state = a_cluster(1)
    after, records, [result] = decide(state, CreateTopics((ORDERS,), validate_only=True))
    assert (after, records, result.error) == (state, (), ErrorCode.NONE)


@pytest.mark.parametrize(
    "topic, error, message",
    [
        (
            ORDERS._replace(name=""),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            ORDERS._replace(name=".."),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: '..' is not allowed",
        ),
        (
            ORDERS._replace(name="a b"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            ORDERS._replace(name="x" * 250),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (
            ORDERS._replace(replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            ORDERS._replace(replication_factor=2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be "
            "reached because only 1 broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        ),
        (
            ORDERS._replace(num_partitions=0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            ORDERS._replace(num_partitions=10_001),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
        (
            ORDERS._replace(num_partitions=10_000),
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        ),
        (
            ORDERS._replace(replication_factor=1, assignments=((0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            ORDERS._replace(num_partitions=1, assignments=((0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            ORDERS._replace(assignments=((0, (9,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            ORDERS._replace(assignments=((0, (1, 1)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            ORDERS._replace(assignments=((0, ()),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            ORDERS._replace(assignments=((1, (1,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            ORDERS._replace(assignments=((0, (1,)), (0, (1,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            ORDERS._replace(configs=(("retention.ms", None), ("segment.ms", None))),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (
            ORDERS._replace(name="__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_kafkas_words(
    topic: NewTopic, error: ErrorCode, message: str
) -> None:
    state = a_cluster(1)
    after, records, answer = decide(state, CreateTopics((topic,)))
    assert (after, records) == (state, ())
    if isinstance(answer, EventError):  # a refusal of the whole request
        assert answer == EventError(error, message)
    else:
        assert answer == (CreateTopicResult(topic.name, error, message),)


def test_an_existing_name_is_refused_and_so_is_one_that_differs_in_dots_and_underscores() -> None:
    state = created(a_cluster(1), ORDERS._replace(name="web.click_s"))

    _, records, results = decide(
        state,
        CreateTopics(
            (
                ORDERS._replace(name="web.click_s"),
                ORDERS._replace(name="web_click.s"),
                ORDERS._replace(name="web-click.s"),
            ),
        ),
    )

    assert [(r.error, r.message) for r in results] == [
        (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'web.click_s' already exists."),
        (
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'web_click.s' collides with existing topic: web.click_s",
        ),
        (ErrorCode.NONE, None),
    ]
    assert len(records) == 2


def test_a_name_asked_for_twice_is_created_not_once_and_answered_last() -> None:
    orders, clicks = ORDERS, NewTopic("clicks", uuid(101))
    state, _, results = decide(a_cluster(1), CreateTopics((orders, clicks, orders)))
    assert list(state.image.topics) == ["clicks"]
    assert [(r.name, r.error, r.message) for r in results] == [
        ("clicks", ErrorCode.NONE, None),
        ("orders", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    ]


def test_a_replica_on_a_fenced_broker_is_not_in_sync_and_does_not_lead() -> None:
    state = fence(a_cluster(1, 2), 1)
    by_hand = ORDERS._replace(assignments=((0, (1, 2)), (1, (2, 1))))

    state = created(state, by_hand)

    partitions = state.image.topics["orders"].partitions
    assert [(p.isr, p.leader) for p in partitions.values()] == [((2,), 2), ((2,), 2)]


def test_without_a_live_broker_no_topic_comes_to_be() -> None:
    state = register(an_empty_cluster(), 1)

    _, _, [placed, by_hand] = decide(
        state, CreateTopics((ORDERS, NewTopic("clicks", uuid(101), assignments=((0, (1,)),))))
    )

    assert (placed.error, placed.message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced.",
    )
    assert (by_hand.error, by_hand.message) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in "
        "controlled shutdown.",
    )


def test_configs_are_judged_by_the_rules_and_spoil_only_their_own_topic() -> None:
    class NoSegments:
        def validate(
            self, resource_type: ResourceType, name: str, new: Mapping[str, str], old: Mapping[str, str]
        ) -> None:
            if "segment.bytes" in new:
                raise KafkaError(ErrorCode.INVALID_CONFIG, "no segments here")

    bad = ORDERS._replace(configs=(("segment.bytes", "1"),))
    state, _, results = decide(
        a_cluster(1, configs=NoSegments()), CreateTopics((bad, NewTopic("clicks", uuid(101))))
    )
    assert list(state.image.topics) == ["clicks"]
    assert results[0] == CreateTopicResult("orders", ErrorCode.INVALID_CONFIG, "no segments here")


# -- delete ----------------------------------------------------------------------------------------------


def test_a_topic_goes_by_name_or_by_id_with_its_configs() -> None:
    topics = (ORDERS._replace(configs=(("retention.ms", "5"),)), NewTopic("web_clicks", uuid(101)))
    state = created(a_cluster(1), *topics)

    state, records, results = decide(state, DeleteTopics((("orders", ZERO), (None, uuid(101)))))

    assert sorted(record.topic_id for record in records) == [uuid(100), uuid(101)]
    assert sorted(results) == [
        DeleteTopicResult("orders", uuid(100)),
        DeleteTopicResult("web_clicks", uuid(101)),
    ]
    image = state.image
    assert not image.topics and not image.topic_names and not image.colliding_topics
    assert image.config(ResourceType.TOPIC, "orders") == {}


@pytest.mark.parametrize(
    "asked, result",
    [
        (
            [("nope", ZERO)],
            DeleteTopicResult("nope", ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "..."),
        ),
        ([(None, uuid(9))], DeleteTopicResult(None, uuid(9), ErrorCode.UNKNOWN_TOPIC_ID, "...")),
        (
            [(None, ZERO)],
            DeleteTopicResult(
                None, ZERO, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
            ),
        ),
        (
            [("orders", uuid(100))],
            DeleteTopicResult(
                "orders",
                uuid(100),
                ErrorCode.INVALID_REQUEST,
                "You may not specify both topic name and topic id.",
            ),
        ),
        (
            [("orders", ZERO)] * 2,
            DeleteTopicResult("orders", ZERO, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ),
        (
            [(None, uuid(100))] * 2,
            DeleteTopicResult(None, uuid(100), ErrorCode.INVALID_REQUEST, "Duplicate topic id."),
        ),
        (
            [("orders", ZERO), (None, uuid(100))],
            DeleteTopicResult(
                "orders",
                uuid(100),
                ErrorCode.INVALID_REQUEST,
                "The provided topic name maps to an ID that was already supplied.",
            ),
        ),
    ],
)
def test_what_is_unknown_or_named_twice_is_refused_and_nothing_is_deleted(
    asked: list[tuple[str | None, bytes]], result: DeleteTopicResult
) -> None:
    state = created(a_cluster(1), ORDERS)
    after, records, results = decide(state, DeleteTopics(tuple(asked)))
    if result.message == "...":
        result = result._replace(message=result.error.message)
    assert (after, records, results) == (state, (), (result,))


# -- more partitions ---------------------------------------------------------------------------------------


def test_new_partitions_get_the_replication_factor_of_the_first_ones() -> None:
    state = created(a_cluster(1, 2, 3), ORDERS._replace(num_partitions=2, replication_factor=3))

    state, records, results = decide(state, CreatePartitions((NewPartitions("orders", 4),)))

    assert results == (CreatePartitionsResult("orders"),)
    assert [(r.partition_id, sorted(r.replicas)) for r in records] == [(2, [1, 2, 3]), (3, [1, 2, 3])]
    assert list(state.image.topics["orders"].partitions) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "asked, error, message",
    [
        (NewPartitions("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (NewPartitions("orders", 1), ErrorCode.INVALID_PARTITIONS, "Topic already has 1 partition(s)."),
        (
            NewPartitions("orders", 0),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 1 partition(s); 0 would not be an increase.",
        ),
        (
            NewPartitions("orders", 3, ((1,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            NewPartitions("orders", 2, ((9,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            NewPartitions("orders", 2, ((1, 2),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is not "
            "consistent with previous partitions, which have 1 replica(s).",
        ),
        # Kafka adds ten thousand partitions and answers UNKNOWN_SERVER_ERROR.
        (
            NewPartitions("orders", 20_000),
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        ),
    ],
)
def test_partitions_that_cannot_be_are_refused_in_kafkas_words(
    asked: NewPartitions, error: ErrorCode, message: str | None
) -> None:
    state = created(a_cluster(1, 2), ORDERS)
    after, records, results = decide(state, CreatePartitions((asked,)))
    assert (after, records) == (state, ())
    assert results == (CreatePartitionsResult(asked.name, error, message),)


def test_a_topic_to_grow_may_be_named_once() -> None:
    state = created(a_cluster(1), ORDERS)
    _, records, results = decide(state, CreatePartitions((NewPartitions("orders", 2),) * 2))
    duplicate = CreatePartitionsResult("orders", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert (records, results) == ((), (duplicate,))
