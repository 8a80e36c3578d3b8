"""ListPartitionReassignments: on one node no partition ever gets other replicas."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import Talk
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


def listing(*topics: tuple[str, list[int]], timeout_ms: int = 10_000) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        topics=[
            ListPartitionReassignmentsTopics(name=name, partition_indexes=partitions)
            for name, partitions in topics
        ],
    )


@conversation
def all_partitions(talk: Talk) -> None:
    talk.topic(partitions=2)
    talk.ask(ListPartitionReassignmentsRequest())


@conversation
def partitions_that_stay_where_they_are(talk: Talk) -> None:
    talk.ask(listing((talk.topic(partitions=2).name, [1, 0, 0])))


@conversation
def what_is_unknown_is_not_told(talk: Talk) -> None:
    talk.ask(listing((talk.topic().name, [7, -1]), (talk.name("missing"), [0]), ("", [0])))


@conversation
def a_topic_without_partitions(talk: Talk) -> None:
    talk.ask(listing((talk.topic().name, [])))


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(listing())


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    talk.ask(listing((talk.topic().name, [0]), timeout_ms=0))
    talk.ask(ListPartitionReassignmentsRequest(timeout_ms=0))


@conversation
def nothing_moves_as_a_listener_of_controllers_says_too(talk: Talk) -> None:
    talk.controllers().ask(listing((talk.topic().name, [0])))
