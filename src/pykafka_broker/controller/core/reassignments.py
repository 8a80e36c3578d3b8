"""Reassignments: other replicas for a partition, in two steps (KIP-455).

The partition first has the old and the new replicas: new ones are listed as `adding`, old ones as `removing`.
When the new ones are in sync, the ISR change drops the old ones (`partitions.py`). A reassignment may be
replaced by another one, or cancelled: then the partition goes back to the replicas it had. The checks, their
order, codes and texts are Apache Kafka 4.3's.

If a reassignment replaces another, its lists are computed anew: a replica that the first one was adding stays
in `adding` if the second one wants it, and a replica that is wanted again leaves `removing`. If a list of the
second one is empty, Apache Kafka keeps the first one's. It then drops a replica that is wanted again but
still in `removing`, and never finishes while a replica that is to be removed is still in `adding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.cluster.image import ClusterImage, PartitionRegistration, TopicImage, changed
from pykafka_broker.controller.core.elections import Election, election_allowed
from pykafka_broker.controller.core.events import (
    AlterPartitionReassignments,
    NewReplicas,
    PartitionResult,
    TopicPartitions,
    TopicResult,
)
from pykafka_broker.controller.core.partitions import as_it_is, partition_change
from pykafka_broker.controller.core.state import ControllerState, Decision, check_operation_size
from pykafka_broker.controller.core.topics import check_manual_assignment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.system.named_tuple import NamedTuple


def alter_partition_reassignments(state: ControllerState, event: AlterPartitionReassignments) -> Decision:
    """Start or cancel reassignments; each partition succeeds or fails on its own."""
    records: list[object] = []
    results = []
    #: The changed partitions: if a partition is named twice, the last wish counts.
    newest: dict[tuple[str, int], PartitionRegistration] = {}
    for name, wishes in event.topics:
        outcomes = []
        for asked in wishes:
            key = (name, asked.partition)
            try:
                topic, partition = _find(state, name, asked.partition)
                partition = newest.get(key, partition)
                record = _alter(state, topic, partition, asked, event.allow_replication_factor_change)
                if record is not None:
                    check_operation_size(len(records) + 1)
                    records.append(record)
                    newest[key] = changed(partition, record)
            except KafkaError as error:
                outcomes.append(PartitionResult(asked.partition, error.code, error.explanation))
            else:
                outcomes.append(PartitionResult(asked.partition))
        results.append(TopicResult(name, tuple(outcomes)))
    return Decision(tuple(records), tuple(results))


def _find(state: ControllerState, name: str, index: int) -> tuple[TopicImage, PartitionRegistration]:
    topic = state.image.topics.get(name)
    if topic is None:
        text = f"Unable to find a topic named {name}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = topic.partitions.get(index)
    if partition is None:
        text = f"Unable to find partition {name}:{index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic, partition


def _alter(
    state: ControllerState,
    topic: TopicImage,
    partition: PartitionRegistration,
    asked: NewReplicas,
    allow_replication_factor_change: bool,
) -> m.PartitionChangeRecord | None:
    if asked.replicas is None:
        return _cancelled(state, topic, partition)
    check_manual_assignment(state, asked.replicas, None)
    if not allow_replication_factor_change:
        _check_replication_factor(partition, asked.replicas)
    return _begun(state, topic, partition, asked.replicas)


def _check_replication_factor(partition: PartitionRegistration, replicas: tuple[int, ...]) -> None:
    """Compare with the replication factor after the ongoing reassignment, if there is one."""
    factor = len({*partition.replicas, *partition.adding} - {*partition.removing})
    if len(replicas) != factor:
        text = f"The replication factor is changed from {factor} to {len(replicas)}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _begun(
    state: ControllerState, topic: TopicImage, partition: PartitionRegistration, replicas: tuple[int, ...]
) -> m.PartitionChangeRecord | None:
    removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    there = set(partition.replicas) - set(partition.adding)
    adding = tuple(sorted(set(replicas) - there))
    target = as_it_is(partition)._replace(
        replicas=(*replicas, *removing),
        removing=removing,
        adding=adding,
    )
    return partition_change(state, topic, partition, target, Election.ONLINE)


def _cancelled(
    state: ControllerState, topic: TopicImage, partition: PartitionRegistration
) -> m.PartitionChangeRecord | None:
    if not is_reassigned(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    if not replicas:
        text = "Invalid replica assignment: addingReplicas contains all replicas."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    election = election_allowed(state, topic)
    if not isr:
        if election is not Election.UNCLEAN:
            text = (
                f"Unable to revert partition assignment for {topic.name}:{partition.partition_id} because "
                "it would require an unclean leader election."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        isr = replicas[:1]
    target = as_it_is(partition)._replace(replicas=replicas, isr=isr, removing=(), adding=())
    return partition_change(state, topic, partition, target, election)


# -- what is under way ------------------------------------------------------------------------------------


class TopicReassignments(NamedTuple):
    """The partitions of a topic that are getting other replicas."""

    topic: str
    partitions: tuple[PartitionRegistration, ...]


def is_reassigned(partition: PartitionRegistration) -> bool:
    """Whether the partition is getting other replicas."""
    return bool(partition.removing or partition.adding)


def ongoing_reassignments(
    image: ClusterImage, asked: Iterable[TopicPartitions] | None
) -> Iterator[TopicReassignments]:
    """The partitions under reassignment, among those asked for; among all if `asked` is None."""
    if asked is None:
        asked = (TopicPartitions(topic.name, tuple(topic.partitions)) for topic in image.topics.values())
    for name, indexes in asked:
        partitions = (image.partition(name, index) for index in indexes)
        reassigned = tuple(p for p in partitions if p is not None and is_reassigned(p))
        if reassigned:
            yield TopicReassignments(name, reassigned)
