"""The ongoing reassignments: ListPartitionReassignments, over the blocking client.

The active controller answers. During a reassignment the replicas of a partition include those being added and
those being removed; its replication factor does not count those being added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from pykafka_broker.protocol.topic_partition import PartitionKey, by_topic
from pykafka_broker.system.named_tuple import NamedTuple

#: The time-out of the controller's answer if a command can do without it.
REASSIGNMENTS_WITHIN_S = 3.0


class Ongoing(NamedTuple):
    """A partition that is being reassigned: all of its replicas, those being added and being removed."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def held(self) -> list[int]:
        """The replicas without those being added."""
        return [broker for broker in self.replicas if broker not in self.adding]

    @property
    def wanted(self) -> list[int]:
        """The replicas when the reassignment is over."""
        return [broker for broker in self.replicas if broker not in self.removing]


def reassignments(
    client: Client, timeout_ms: int, partitions: Iterable[PartitionKey] | None = None
) -> dict[PartitionKey, Ongoing]:
    """The ongoing reassignments, of these partitions or of all.

    Raises:
        KafkaError, OSError: the controller refuses, or does not answer.
    """
    request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms)
    if partitions is not None:
        request.topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    answer = client.send(request)
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, partition.partition_index): Ongoing(
            list(partition.replicas), list(partition.adding_replicas), list(partition.removing_replicas)
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def reassignments_as_told(client: Client) -> dict[PartitionKey, Ongoing]:
    """All reassignments; none if the cluster does not serve the request, the user may not send it, or no
    controller answers.
    """
    try:
        return reassignments(client, int(client.timeout_s * 1000))
    except OSError:
        return {}
    except KafkaError as error:
        if error.code in _UNTOLD:
            return {}
        raise


_UNTOLD = frozenset(
    {
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)


def replication_factor(replicas: Sequence[int], ongoing: Ongoing | None) -> int:
    """How many replicas a partition should have in sync, as kafka-topics counts them.

    A reassignment that had ended when `replicas` was read does not count.
    """
    if ongoing is None or not {*replicas} & {*ongoing.adding, *ongoing.removing}:
        return len(replicas)
    return len(ongoing.replicas) - len(ongoing.adding)
