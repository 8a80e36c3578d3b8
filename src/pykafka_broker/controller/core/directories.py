"""The log directories of replicas (KIP-858): `PartitionRecord.directories`.

A broker with several directories places new replicas itself and reports their directories to the controller.
It also reports a move before it serves a replica from another directory. So the controller knows which
replicas a failed directory takes offline.
"""

from __future__ import annotations

from pykafka_broker.cluster.features import DIRECTORY_IDS_SINCE
from pykafka_broker.cluster.image import BrokerRegistration, ClusterImage, PartitionRegistration, TopicImage
from pykafka_broker.controller.core.brokers import check_broker_epoch
from pykafka_broker.controller.core.events import AssignReplicasToDirs
from pykafka_broker.controller.core.partitions import directory_changes
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def check_supported(image: ClusterImage) -> None:
    """Check that records of this metadata may have directories.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    if image.metadata_version < DIRECTORY_IDS_SINCE:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")


def assign_replicas_to_dirs(state: ControllerState, event: AssignReplicasToDirs) -> Decision:
    """Record the directories of a broker's replicas; a replica in an offline directory loses leadership."""
    check_supported(state.image)
    broker = check_broker_epoch(state, event.broker_id, event.broker_epoch)
    records: list[object] = []
    errors = []
    for assignment in event.assignments:
        topic = state.image.topic_by_id(assignment.topic_id)
        partition = None if topic is None else topic.partitions.get(assignment.partition)
        error = _refusal(topic, partition, broker)
        errors.append(error)
        if error is ErrorCode.NONE:
            assert topic is not None and partition is not None
            records += directory_changes(state, topic, partition, broker.broker_id, assignment.directory)
    return Decision(tuple(records), tuple(errors))


def _refusal(
    topic: TopicImage | None, partition: PartitionRegistration | None, broker: BrokerRegistration
) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
