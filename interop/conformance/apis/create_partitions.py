"""CreatePartitions: more partitions for topics that exist."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NODE, NO_NODE = 1, 9


def more(name: str, count: int, assigned: list[list[int]] | None = None) -> CreatePartitionsTopic:
    assignments = (
        None if assigned is None else [CreatePartitionsAssignment(broker_ids=each) for each in assigned]
    )
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(
    *topics: CreatePartitionsTopic, timeout_ms: int = 10_000, only_validate: bool = False
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=only_validate)


def partitions_of(talk: Talk, name: str, count: int) -> None:
    """See the topic, once it has as many partitions."""
    talk.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False),
        until=lambda answer: len(answer.topics[0].partitions) == count,
    )


@conversation
def a_topic_grows(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(grow(more(name, 3)))
    partitions_of(talk, name, 3)


@conversation
def a_topic_grows_by_hand(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(grow(more(name, 3, [[NODE], [NODE]])))
    partitions_of(talk, name, 3)


@conversation
def several_topics_grow(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("b", "a")]
    talk.ask(grow(*(more(name, 2) for name in names)))


@conversation(LATEST)
def in_which_order_many_topics_are_answered(talk: Talk) -> None:
    names = [talk.name(f"missing-{number}") for number in range(30)]
    twice = names[3::5]
    errors = [E.INVALID_REQUEST] * len(twice)
    errors += [E.UNKNOWN_TOPIC_OR_PARTITION] * (len(names) - len(twice))
    talk.ask(grow(*(more(name, 2) for name in (*names, *twice))), *errors)


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(grow())


@conversation
def as_many_as_there_are(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic(partitions=2).name, 2)), E.INVALID_PARTITIONS)


@conversation
def fewer_than_there_are(talk: Talk) -> None:
    name = talk.topic(partitions=2).name
    for count in (1, 0, -1, -(2**31)):
        talk.ask(grow(more(name, count)), E.INVALID_PARTITIONS)


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(grow(more(talk.name(), 2)), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_cannot_be_a_name(talk: Talk) -> None:
    for name in ("", "two words"):
        talk.ask(grow(more(name, 2)), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def an_unknown_topic_beside_a_known_one(talk: Talk) -> None:
    names = [talk.name("missing"), talk.topic().name]
    talk.ask(grow(*(more(name, 2) for name in names)), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_topic_named_twice_does_not_grow(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(grow(more(name, 2), more(name, 3)), E.INVALID_REQUEST)
    partitions_of(talk, name, 1)


@conversation
def only_validated(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(grow(more(name, 3), only_validate=True))
    partitions_of(talk, name, 1)


@conversation
def only_validated_and_refused(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 1), only_validate=True), E.INVALID_PARTITIONS)


@conversation
def more_assignments_than_new_partitions(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2, [[NODE], [NODE]])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def fewer_assignments_than_new_partitions(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(grow(more(name, 3, [[NODE]])), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(grow(more(name, 3, [])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_assignment_without_nodes(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2, [[]])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_assignment_to_a_node_that_does_not_exist(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2, [[NO_NODE]])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_assignment_to_the_same_node_twice(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2, [[NODE, NODE]])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def another_number_of_replicas_than_the_topic_has(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2, [[NODE, NO_NODE]])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def a_wrong_count_is_seen_before_a_wrong_assignment(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 1, [[NO_NODE]])), E.INVALID_PARTITIONS)


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 2), timeout_ms=0), E.REQUEST_TIMED_OUT)


@conversation(LATEST, last=True)
def more_partitions_than_one_request_may_make(talk: Talk) -> None:
    talk.ask(grow(more(talk.topic().name, 10_002)), E.UNKNOWN_SERVER_ERROR)


@conversation
def the_metadata_log_does_not_grow(talk: Talk) -> None:
    talk.ask(grow(more("__cluster_metadata", 2)), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def topics_grow_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    name = talk.topic().name
    controllers.ask(grow(more(name, 3)))
    controllers.ask(grow(more(name, 2)), E.INVALID_PARTITIONS)
    controllers.ask(grow(more(talk.name("missing"), 2)), E.UNKNOWN_TOPIC_OR_PARTITION)
