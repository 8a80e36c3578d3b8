"""AlterPartitionReassignments: other replicas for partitions, where there is one node to have them."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from pykafka_broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

NODE, NO_NODE = 1, 9


def onto(name: str, *replicas: list[int] | None) -> ReassignableTopic:
    """The replicas of partition 0, 1, ..."""
    return ReassignableTopic(
        name=name,
        partitions=[
            ReassignablePartition(partition_index=index, replicas=each) for index, each in enumerate(replicas)
        ],
    )


def reassigning(
    *topics: ReassignableTopic, timeout_ms: int = 10_000, same_factor: bool = False
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, allow_replication_factor_change=not same_factor, topics=list(topics)
    )


@conversation
def the_replicas_that_a_partition_has(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(reassigning(onto(name, [NODE])))
    talk.ask(ListPartitionReassignmentsRequest(), version=0)
    talk.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)]), version=0)


@conversation
def several_partitions_of_several_topics(talk: Talk) -> None:
    names = [talk.topic(label, partitions=2).name for label in ("b", "a")]
    talk.ask(reassigning(*(onto(name, [NODE], [NODE]) for name in names)))


@conversation
def nothing_to_call_off(talk: Talk) -> None:
    talk.ask(reassigning(onto(talk.topic().name, None)), E.NO_REASSIGNMENT_IN_PROGRESS)


@conversation
def a_node_that_does_not_exist(talk: Talk) -> None:
    name = talk.topic().name
    for replicas in ([NO_NODE], [NODE, NO_NODE], [NO_NODE, NODE], [-1]):
        talk.ask(reassigning(onto(name, replicas)), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def the_same_node_twice(talk: Talk) -> None:
    talk.ask(reassigning(onto(talk.topic().name, [NODE, NODE])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def no_replicas(talk: Talk) -> None:
    talk.ask(reassigning(onto(talk.topic().name, [])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def an_unknown_topic(talk: Talk) -> None:
    errors = [E.UNKNOWN_TOPIC_OR_PARTITION] * 3
    talk.ask(reassigning(onto(talk.name(), [NODE], None, [])), *errors)


@conversation
def an_unknown_partition_beside_a_known_one(talk: Talk) -> None:
    talk.ask(reassigning(onto(talk.topic().name, [NODE], [NODE])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def one_partition_fails_and_the_others_do_not(talk: Talk) -> None:
    name = talk.topic(partitions=4).name
    errors = [E.INVALID_REPLICA_ASSIGNMENT, E.NO_REASSIGNMENT_IN_PROGRESS]
    talk.ask(reassigning(onto(name, [NODE], [NO_NODE], None, [NODE])), *errors)


@conversation
def a_partition_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    twice = onto(name, [NODE])
    twice.partitions += onto(name, [NODE]).partitions
    talk.ask(reassigning(twice))
    talk.ask(reassigning(onto(name, [NODE]), onto(name, [NO_NODE])), E.INVALID_REPLICA_ASSIGNMENT)


@conversation
def what_cannot_be_a_name(talk: Talk) -> None:
    for name in ("", "two words"):
        talk.ask(reassigning(onto(name, [NODE])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_topic_without_partitions(talk: Talk) -> None:
    talk.ask(reassigning(onto(talk.topic().name)))


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(reassigning())


@conversation("1+")
def the_replication_factor_may_not_change(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(reassigning(onto(name, [NODE]), same_factor=True))
    talk.ask(reassigning(onto(name, None), same_factor=True), E.NO_REASSIGNMENT_IN_PROGRESS)
    talk.ask(reassigning(onto(name, [NODE, NO_NODE]), same_factor=True), E.INVALID_REPLICA_ASSIGNMENT)
    talk.ask(reassigning(same_factor=True))


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(reassigning(onto(name, [NODE]), timeout_ms=0), *[E.REQUEST_TIMED_OUT] * 2)
    talk.ask(reassigning(timeout_ms=0))


@conversation("1+")
def a_timeout_of_nothing_where_the_factor_may_not_change(talk: Talk) -> None:
    asked = reassigning(onto(talk.topic().name, [NODE]), timeout_ms=0, same_factor=True)
    talk.ask(asked, *[E.REQUEST_TIMED_OUT] * 2)


@conversation(LATEST)
def the_metadata_log_stays_where_it_is(talk: Talk) -> None:
    talk.ask(reassigning(onto("__cluster_metadata", [NODE])), E.UNKNOWN_TOPIC_OR_PARTITION)
