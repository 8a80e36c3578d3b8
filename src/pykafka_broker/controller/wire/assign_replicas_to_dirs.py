"""AssignReplicasToDirs (API key 73): a broker says which of its log directories hold its replicas."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pykafka_broker.controller.core.events import AssignReplicasToDirs, DirectoryAssignment
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import assign_replicas_to_dirs as m


def request(event: AssignReplicasToDirs, _: common.Terms) -> m.AssignReplicasToDirsRequest:
    """The request of a broker."""
    by_directory = groupby(
        sorted(event.assignments, key=lambda one: one.directory), key=lambda one: one.directory
    )
    return m.AssignReplicasToDirsRequest(
        broker_id=event.broker_id,
        broker_epoch=event.broker_epoch,
        directories=[
            m.AssignReplicasToDirsRequestDirectoryData(id=directory, topics=_by_topic(of_directory))
            for directory, of_directory in by_directory
        ],
    )


def read_request(request: m.AssignReplicasToDirsRequest) -> AssignReplicasToDirs:
    """The event of a request."""
    assignments = tuple(
        DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    )
    return AssignReplicasToDirs(request.broker_id, request.broker_epoch, assignments)


def response(
    outcomes: Iterable[ErrorCode], request: m.AssignReplicasToDirsRequest
) -> m.AssignReplicasToDirsResponse:
    """The response with the request's directories. The outcomes are in the order of the request's
    replicas.
    """
    left = iter(outcomes)
    return m.AssignReplicasToDirsResponse(
        error_code=0,
        directories=[
            m.AssignReplicasToDirsResponseDirectoryData(
                id=directory.id,
                topics=[
                    m.AssignReplicasToDirsResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            m.AssignReplicasToDirsResponsePartitionData(
                                partition_index=partition.partition_index, error_code=int(next(left))
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ],
    )


def refused(_: m.AssignReplicasToDirsRequest, error: KafkaError) -> m.AssignReplicasToDirsResponse:
    """The answer that refuses a request as a whole."""
    return m.AssignReplicasToDirsResponse(error_code=int(error.code), directories=[])


def read_response(
    response: m.AssignReplicasToDirsResponse, event: AssignReplicasToDirs
) -> tuple[ErrorCode, ...]:
    """An outcome for each assignment; KafkaError if all are refused."""
    common.raise_refusal(response.error_code)
    outcomes = {
        DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id): error_of(
            partition.error_code
        )
        for directory in response.directories
        for topic in directory.topics
        for partition in topic.partitions
    }
    return tuple(outcomes.get(one, ErrorCode.UNKNOWN_SERVER_ERROR) for one in event.assignments)


def _by_topic(assignments: Iterable[DirectoryAssignment]) -> list[m.AssignReplicasToDirsRequestTopicData]:
    by_topic: dict[bytes, list[m.AssignReplicasToDirsRequestPartitionData]] = {}
    for one in assignments:
        partition = m.AssignReplicasToDirsRequestPartitionData(partition_index=one.partition)
        by_topic.setdefault(one.topic_id, []).append(partition)
    return [
        m.AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]
