"""DescribeQuorum: the quorum of the metadata log, which one node is by itself."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)

METADATA = "__cluster_metadata"
#: The error of each partition, whichever it is.
UNKNOWN = E.UNKNOWN_TOPIC_OR_PARTITION


def asking(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes],
            )
            for name, indexes in topics
        ]
    )


@conversation
def the_only_node_leads_and_votes(talk: Talk) -> None:
    talk.ask(asking((METADATA, [0])))


@conversation
def another_partition_of_the_metadata_log(talk: Talk) -> None:
    talk.ask(asking((METADATA, [1])), UNKNOWN)
    talk.ask(asking((METADATA, [-1])), UNKNOWN)


@conversation
def the_partition_of_the_metadata_log_twice(talk: Talk) -> None:
    talk.ask(asking((METADATA, [0, 0])), UNKNOWN, UNKNOWN)
    talk.ask(asking((METADATA, [0]), (METADATA, [0])), UNKNOWN, UNKNOWN)


@conversation
def the_metadata_log_beside_another_topic(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(asking((METADATA, [0]), (name, [0])), UNKNOWN, UNKNOWN)
    talk.ask(asking((name, [0]), (METADATA, [0])), UNKNOWN, UNKNOWN)


@conversation
def topics_without_a_quorum_of_their_own(talk: Talk) -> None:
    talk.ask(asking((talk.topic(partitions=2).name, [0, 1])), UNKNOWN, UNKNOWN)
    talk.ask(asking((talk.name("missing"), [3]), ("", [0])), UNKNOWN, UNKNOWN)


@conversation
def the_metadata_log_without_partitions(talk: Talk) -> None:
    talk.ask(asking((METADATA, [])))


@conversation
def the_quorum_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(asking((METADATA, [0])))
    controllers.ask(asking((METADATA, [1])), UNKNOWN)


@conversation
def nothing(talk: Talk) -> None:
    talk.ask(asking())
