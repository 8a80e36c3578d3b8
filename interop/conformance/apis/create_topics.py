"""CreateTopics: make topics, with partitions counted or assigned by hand."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NODE, NO_NODE = 1, 9


def new(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assigned: dict[int, list[int]] | list[tuple[int, list[int]]] | None = None,
    configs: list[tuple[str, str | None]] | None = None,
) -> CreatableTopic:
    """One topic of the request; with `assigned` (partition -> nodes) nothing is counted unless it is said."""
    pairs = assigned.items() if isinstance(assigned, dict) else assigned or ()
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in pairs
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs or ()],
    )


def by_hand(name: str, assigned: dict[int, list[int]] | list[tuple[int, list[int]]]) -> CreatableTopic:
    return new(name, -1, -1, assigned)


def create(
    *topics: CreatableTopic, timeout_ms: int = 10_000, only_validate: bool = False
) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=only_validate)


def described(*names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )


def created(talk: Talk, topic: CreatableTopic, **more: Any) -> None:
    """Create it, see what is answered and what there is then."""
    talk.created.append(topic.name)
    talk.ask(create(topic, **more))
    talk.ask(described(topic.name), until=lambda answer: bool(answer.topics[0].partitions))


@conversation
def a_topic_with_counted_partitions(talk: Talk) -> None:
    created(talk, new(talk.name(), 3))


@conversation
def a_topic_with_partitions_assigned_by_hand(talk: Talk) -> None:
    created(talk, by_hand(talk.name(), {0: [NODE], 1: [NODE]}))


@conversation
def partitions_assigned_in_another_order(talk: Talk) -> None:
    created(talk, by_hand(talk.name(), {2: [NODE], 0: [NODE], 1: [NODE]}))


@conversation
def a_topic_with_configs(talk: Talk) -> None:
    configs: list[tuple[str, str | None]] = [
        ("retention.ms", "60000"),
        ("cleanup.policy", "compact,delete"),
        ("compression.type", "zstd"),
        ("min.insync.replicas", "2"),
    ]
    created(talk, new(talk.name(), configs=configs))


@conversation
def minus_1_means_the_brokers_defaults(talk: Talk) -> None:
    created(talk, new(talk.name(), -1, -1))


@conversation
def several_topics_in_one_request(talk: Talk) -> None:
    names = [talk.name(label) for label in ("b", "a", "c")]
    talk.created += names
    talk.ask(create(*(new(name) for name in names)))


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(create())


@conversation
def a_topic_that_exists(talk: Talk) -> None:
    talk.ask(create(new(talk.topic().name)), E.TOPIC_ALREADY_EXISTS)


@conversation
def a_topic_that_exists_beside_a_new_one(talk: Talk) -> None:
    talk.created.append(talk.name("b"))
    talk.ask(create(new(talk.topic("a").name), new(talk.name("b"))), E.TOPIC_ALREADY_EXISTS)


@conversation
def a_topic_named_twice(talk: Talk) -> None:
    talk.created.append(talk.name("b"))
    twice = new(talk.name("a"))
    talk.ask(create(twice, new(talk.name("b")), twice), E.INVALID_REQUEST)
    talk.ask(described(twice.name), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def only_validated(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), 2), only_validate=True))
    talk.ask(described(talk.name()), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def only_validated_and_refused(talk: Talk) -> None:
    topics = [new(talk.topic("a").name), new(talk.name("b"), 0), new("two words")]
    talk.ask(
        create(*topics, only_validate=True),
        E.TOPIC_ALREADY_EXISTS,
        E.INVALID_PARTITIONS,
        E.INVALID_TOPIC_EXCEPTION,
    )


@conversation
def what_cannot_be_a_name(talk: Talk) -> None:
    for name in ("", ".", "..", "two words", "slash/", "x" * 250, "ümlaut"):
        talk.ask(create(new(name)), E.INVALID_TOPIC_EXCEPTION)


@conversation
def the_longest_name(talk: Talk) -> None:
    created(talk, new(talk.name().ljust(249, "x")))


@conversation
def names_that_differ_in_a_dot_alone(talk: Talk) -> None:
    talk.topic(name=talk.name("a.b"))
    talk.ask(create(new(talk.name("a_b"))), E.INVALID_TOPIC_EXCEPTION)


@conversation
def names_in_one_request_that_differ_in_a_dot_alone(talk: Talk) -> None:
    names = [talk.name("a.b"), talk.name("a_b")]
    talk.created += names
    talk.ask(create(*(new(name) for name in names)))


@conversation
def the_metadata_log(talk: Talk) -> None:
    talk.ask(create(new("__cluster_metadata"), new(talk.name(), 0)), E.INVALID_PARTITIONS, E.INVALID_REQUEST)


@conversation
def the_offsets_topic(talk: Talk) -> None:
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), version=4)
    talk.ask(create(new("__consumer_offsets")), E.TOPIC_ALREADY_EXISTS)


@conversation
def no_partitions(talk: Talk) -> None:
    for count in (0, -2, -(2**31)):
        talk.ask(create(new(talk.name(), count)), E.INVALID_PARTITIONS)


@conversation
def no_replicas(talk: Talk) -> None:
    for factor in (0, -2, -(2**15)):
        talk.ask(create(new(talk.name(), 1, factor)), E.INVALID_REPLICATION_FACTOR)


@conversation
def more_replicas_than_brokers(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), 1, 2)), E.INVALID_REPLICATION_FACTOR)


@conversation
def more_partitions_than_one_request_may_make(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), 10_001)), E.POLICY_VIOLATION)
    talk.ask(
        create(new(talk.name("a"), 6_000), new(talk.name("b"), 6_000)), E.POLICY_VIOLATION, E.POLICY_VIOLATION
    )


@conversation
def counted_and_assigned_at_once(talk: Talk) -> None:
    assigned = {0: [NODE]}
    talk.ask(create(new(talk.name(), 1, -1, assigned)), E.INVALID_REQUEST)
    talk.ask(create(new(talk.name(), -1, 1, assigned)), E.INVALID_REQUEST)
    talk.ask(create(new(talk.name(), 1, 1, assigned)), E.INVALID_REQUEST)


@conversation
def an_assignment_without_nodes(talk: Talk) -> None:
    talk.ask(create(by_hand(talk.name(), {0: []})), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_assignment_to_nodes_that_do_not_exist(talk: Talk) -> None:
    talk.ask(create(by_hand(talk.name(), {0: [NO_NODE]})), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(create(by_hand(talk.name(), {0: [NODE, NO_NODE]})), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(create(by_hand(talk.name(), {0: [-1]})), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_assignment_to_the_same_node_twice(talk: Talk) -> None:
    talk.ask(create(by_hand(talk.name(), {0: [NODE, NODE]})), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def assignments_with_a_gap(talk: Talk) -> None:
    talk.ask(create(by_hand(talk.name(), {0: [NODE], 2: [NODE]})), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(create(by_hand(talk.name(), {1: [NODE]})), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(create(by_hand(talk.name(), {-1: [NODE]})), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def a_partition_assigned_twice(talk: Talk) -> None:
    talk.ask(create(by_hand(talk.name(), [(0, [NODE]), (0, [NODE])])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_unknown_config(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), configs=[("no.such.key", "1")])), E.INVALID_CONFIG)


@conversation
def config_values_that_cannot_be(talk: Talk) -> None:
    wrong: list[tuple[str, str | None]] = [
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "shred"),
        ("segment.bytes", "1"),
        ("min.insync.replicas", "0"),
        ("preallocate", "perhaps"),
        ("min.cleanable.dirty.ratio", "2.0"),
        ("max.message.bytes", ""),
        ("segment.bytes", "99999999999"),
    ]
    for config in wrong:
        talk.ask(create(new(talk.name(), configs=[config])), E.INVALID_CONFIG)


@conversation
def a_config_without_a_value(talk: Talk) -> None:
    configs: list[tuple[str, str | None]] = [
        ("retention.ms", None),
        ("segment.ms", "1000"),
        ("flush.ms", None),
    ]
    talk.ask(create(new(talk.name(), configs=configs)), E.INVALID_CONFIG)


@conversation
def a_config_named_twice_counts_as_said_last(talk: Talk) -> None:
    created(talk, new(talk.name(), configs=[("retention.ms", "1"), ("retention.ms", "2")]))


@conversation
def configs_that_contradict_each_other(talk: Talk) -> None:
    lags = [("min.compaction.lag.ms", "2000"), ("max.compaction.lag.ms", "1000")]
    talk.ask(create(new(talk.name(), configs=list(lags))), E.INVALID_CONFIG)


@conversation
def local_retention_beyond_the_whole_matters_only_to_tiered_topics(talk: Talk) -> None:
    created(talk, new(talk.name(), configs=[("local.retention.ms", "2000"), ("retention.ms", "1000")]))


@conversation
def tiered_storage_is_off(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), configs=[("remote.storage.enable", "true")])), E.INVALID_CONFIG)


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    talk.created.append(talk.name())
    talk.ask(create(new(talk.name()), timeout_ms=0), E.REQUEST_TIMED_OUT)


@conversation
def a_negative_timeout(talk: Talk) -> None:
    talk.created.append(talk.name())
    talk.ask(create(new(talk.name()), timeout_ms=-1), E.REQUEST_TIMED_OUT)


@conversation
def an_existing_name_is_seen_before_anything_else_that_is_wrong(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(create(new(name, 0, 0, configs=[("no.such.key", "1")])), E.TOPIC_ALREADY_EXISTS)


@conversation
def a_wrong_config_is_seen_before_wrong_numbers(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), 0, 0, configs=[("no.such.key", "1")])), E.INVALID_CONFIG)


@conversation
def a_wrong_replication_factor_is_seen_before_a_wrong_count(talk: Talk) -> None:
    talk.ask(create(new(talk.name(), 0, 0)), E.INVALID_REPLICATION_FACTOR)


@conversation
def a_wrong_name_is_seen_before_wrong_numbers(talk: Talk) -> None:
    talk.ask(create(new("two words", 0, 0)), E.INVALID_TOPIC_EXCEPTION)


@conversation(LATEST)
def every_config_of_a_new_topic_is_shown(talk: Talk) -> None:
    created(talk, new(talk.name(), configs=[("flush.messages", "5"), ("segment.jitter.ms", "9")]))


@conversation
def topics_are_created_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    name = talk.name()
    controllers.ask(create(new(name, 2, configs=[("retention.ms", "1000")])))
    talk.created.append(name)
    controllers.ask(create(new(name)), E.TOPIC_ALREADY_EXISTS)
    controllers.ask(
        create(new("no good"), new(talk.name("other"), 0)), E.INVALID_TOPIC_EXCEPTION, E.INVALID_PARTITIONS
    )
