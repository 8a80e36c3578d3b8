"""Elections that are asked for: preferred and unclean ones, by clients (KIP-183, KIP-460).

Who can lead is decided in `partitions.py`. A preferred election brings back the first replica as the leader;
where that cannot be, and the leader could not stay either, another replica that is in sync leads. An unclean
one takes any live replica, and only for a partition without a leader. The checks, their order, codes and
words are Apache Kafka 4.3's.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.cluster.events import (
    ElectionType,
    ElectLeaders,
    PartitionResult,
    TopicPartitions,
    TopicResult,
)
from pykafka_broker.cluster.image import NO_LEADER, PartitionRegistration, changed
from pykafka_broker.cluster.partitions import Election, as_it_is, partition_change
from pykafka_broker.cluster.state import ControllerState, Decision
from pykafka_broker.cluster.topics import check_operation_size
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import state_walked
from pykafka_broker.protocol.messages.records import metadata as m

_ELECTIONS = {ElectionType.PREFERRED: Election.PREFERRED, ElectionType.UNCLEAN: Election.UNCLEAN}


def elect_leaders(state: ControllerState, event: ElectLeaders) -> Decision:
    """Each partition succeeds or fails alone. Where all are asked for, those that need none are left out."""
    if event.election_type not in _ELECTIONS:
        text = f"Unknown election type {event.election_type}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    election_type = ElectionType(event.election_type)
    records: list[object] = []
    results = []
    #: A partition that is named twice needs no second election.
    newest: dict[tuple[str, int], PartitionRegistration] = {}
    for asked in _all_partitions(state) if event.topics is None else event.topics:
        outcomes = []
        for index in asked.partitions:
            key = (asked.topic, index)
            partition = newest.get(key) or state.image.partition(*key)
            record, outcome = _elect(state, key, partition, election_type)
            if record is not None:
                assert partition is not None
                records.append(record)
                newest[key] = changed(partition, record)
            if event.topics is not None or outcome.error is not ErrorCode.ELECTION_NOT_NEEDED:
                outcomes.append(outcome)
        results.append(TopicResult(asked.topic, tuple(outcomes)))
    check_operation_size(records)
    return Decision(tuple(records), tuple(results))


def _all_partitions(state: ControllerState) -> Iterator[TopicPartitions]:
    topics = state.image.topics
    for name in state_walked(topics):
        yield TopicPartitions(name, tuple(topics[name].partitions))


def _elect(
    state: ControllerState,
    key: tuple[str, int],
    partition: PartitionRegistration | None,
    election_type: ElectionType,
) -> tuple[m.PartitionChangeRecord | None, PartitionResult]:
    name, index = key
    topic = state.image.topics.get(name)
    if topic is None:
        text = f"No such topic as {name}"
        return None, PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if partition is None:
        text = f"No such partition as {name}-{index}"
        return None, PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if not _is_needed(partition, election_type):
        return None, _refused(index, ErrorCode.ELECTION_NOT_NEEDED)
    record = partition_change(state, topic, partition, as_it_is(partition), _ELECTIONS[election_type])
    if record is not None:
        return record, PartitionResult(index)
    if election_type is ElectionType.PREFERRED:
        return None, _refused(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return None, _refused(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _is_needed(partition: PartitionRegistration, election_type: ElectionType) -> bool:
    if election_type is ElectionType.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader == NO_LEADER


def _refused(index: int, error: ErrorCode) -> PartitionResult:
    return PartitionResult(index, error, error.message)
