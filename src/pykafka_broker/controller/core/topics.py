"""Topics: create, delete, add partitions. The checks, their order, codes and texts are Apache Kafka 4.3's.

Authorization, the configs that a CreateTopics answer shows, and time-outs are not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.cluster.image import (
    PartitionRegistration,
    ResourceType,
    TopicImage,
    unify_collision_chars,
)
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.controller.core.configs import incremental_records
from pykafka_broker.controller.core.events import (
    ConfigOperation,
    CreatePartitions,
    CreatePartitionsResult,
    CreateTopicResult,
    CreateTopics,
    DeleteTopicResult,
    DeleteTopics,
    Moment,
    NewPartitions,
    NewTopic,
)
from pykafka_broker.controller.core.partitions import default_directories
from pykafka_broker.controller.core.placement import place_replicas
from pykafka_broker.controller.core.state import ControllerState, Decision, check_operation_size
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC

MAX_PARTITIONS_PER_REQUEST = 10_000


# -- create -----------------------------------------------------------------------------------------


def create_topics(state: ControllerState, event: CreateTopics, moment: Moment) -> Decision:
    """Create topics, each on its own; duplicate names and the metadata topic are answered last."""
    by_name: dict[str, NewTopic] = {}
    duplicates: dict[str, None] = {}
    for topic in event.topics:
        if topic.name in by_name:
            duplicates[topic.name] = None
        by_name[topic.name] = topic
    asked = [t for t in by_name.values() if t.name not in duplicates and t.name != METADATA_TOPIC]
    _check_total_partitions(state, asked)

    records: list[object] = []
    results: list[CreateTopicResult] = []
    for number, (topic, topic_id) in enumerate(zip(asked, moment.random_uuids(), strict=False)):
        new = topic if any(topic.topic_id) else topic._replace(topic_id=topic_id)
        try:
            created, result = _create_topic(state, new, moment.seed + number)
        except KafkaError as error:
            result = CreateTopicResult(topic.name, error.code, error.message)
        else:
            records += created
        results.append(result)
    check_operation_size(len(records))

    results += [
        CreateTopicResult(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name in duplicates
    ]
    if METADATA_TOPIC in by_name and METADATA_TOPIC not in duplicates:
        text = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        results.append(CreateTopicResult(METADATA_TOPIC, ErrorCode.INVALID_REQUEST, text))
    return Decision(() if event.validate_only else tuple(records), tuple(results))


def _check_total_partitions(state: ControllerState, topics: Iterable[NewTopic]) -> None:
    total = sum(topic.partition_count(state.rules.default_partitions) for topic in topics)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _create_topic(
    state: ControllerState, topic: NewTopic, seed: int
) -> tuple[list[object], CreateTopicResult]:
    _check_name(state, topic.name)
    config_records = _config_records(state, topic)
    partitions = _by_hand(state, topic) if topic.assignments else _placed(state, topic, seed)
    records: list[object] = [
        m.TopicRecord(name=topic.name, topic_id=topic.topic_id),
        *config_records,
        *(partition.to_record(topic.topic_id) for partition in partitions),
    ]
    result = CreateTopicResult(
        topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
    )
    return records, result


def _check_name(state: ControllerState, name: str) -> None:
    image = state.image
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:
        colliding = image.colliding_topics.get(unify_collision_chars(name))
        if colliding:
            text = f"Topic '{name}' collides with existing topic: {colliding[0]}"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    if reason := why_invalid_name(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def _config_records(state: ControllerState, topic: NewTopic) -> list[object]:
    if not topic.configs:
        return []
    if nulls := [key for key, value in topic.configs if value is None]:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    changes = tuple((key, ConfigOperation.SET, value) for key, value in dict(topic.configs).items())
    return incremental_records(state, ResourceType.TOPIC, topic.name, changes, newly_created=True)


def _by_hand(state: ControllerState, topic: NewTopic) -> list[PartitionRegistration]:
    if topic.replication_factor != -1:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if topic.num_partitions != -1:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    partitions: dict[int, PartitionRegistration] = {}
    replication_factor: int | None = None
    for number, replicas in topic.assignments:
        if number in partitions:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {number}")
        check_manual_assignment(state, replicas, replication_factor)
        replication_factor = len(replicas)
        partitions[number] = _by_hand_partition(state, number, replicas)
    if sorted(partitions) != list(range(len(partitions))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[number] for number in range(len(partitions))]


def _by_hand_partition(
    state: ControllerState, number: int, replicas: tuple[int, ...]
) -> PartitionRegistration:
    if not any(state.is_active(replica) for replica in replicas):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {number} "
            "are fenced or in controlled shutdown."
        )
    return _new_partition(state, number, replicas)


def _placed(state: ControllerState, topic: NewTopic, seed: int) -> list[PartitionRegistration]:
    rules = state.rules
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    count = topic.partition_count(rules.default_partitions)
    factor = rules.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    try:
        placed = place_replicas(state.image.brokers.values(), count, factor, seed)
    except KafkaError as error:
        text = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text) from None
    return [_new_partition(state, number, replicas) for number, replicas in enumerate(placed)]


def _new_partition(state: ControllerState, number: int, replicas: tuple[int, ...]) -> PartitionRegistration:
    """A new partition: every active replica is in sync, and the first of them leads."""
    isr = tuple(replica for replica in replicas if state.is_active(replica))
    return PartitionRegistration(
        partition_id=number,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        directories=default_directories(state, replicas),
    )


def check_manual_assignment(
    state: ControllerState, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Refuse replicas that are unknown or repeated, or whose number differs from that of other partitions."""
    if not replicas:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for replica in sorted(replicas):
        if replica not in state.image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {replica}, "
                "but no such broker is registered."
            )
        if replica == previous:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {replica} more than once."
            )
        previous = replica
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _bad_assignment(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


# -- delete -----------------------------------------------------------------------------------------


def delete_topics(state: ControllerState, event: DeleteTopics) -> Decision:
    """Delete by name or id; a topic that is given twice, by name or by id, is refused and stays."""
    image = state.image
    results: list[DeleteTopicResult] = []
    names: dict[str, int] = {}
    ids: dict[bytes, int] = {}
    for name, topic_id in event.topics:
        if name is None and not any(topic_id):
            text = "Neither topic name nor id were specified."
            results.append(DeleteTopicResult(None, topic_id, ErrorCode.INVALID_REQUEST, text))
        elif name is None:
            ids[topic_id] = ids.get(topic_id, 0) + 1
        elif any(topic_id):
            text = "You may not specify both topic name and topic id."
            results.append(DeleteTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, text))
        else:
            names[name] = names.get(name, 0) + 1

    for name, times in names.items():
        if times > 1:
            results.append(_invalid_delete(name, ZERO_UUID, "Duplicate topic name."))
    for topic_id, times in ids.items():
        if times > 1:
            results.append(_invalid_delete(None, topic_id, "Duplicate topic id."))

    found: dict[bytes, TopicImage] = {}
    for topic_id, times in ids.items():
        topic = image.topic_by_id(topic_id)
        if times > 1:
            continue
        if topic is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            results.append(DeleteTopicResult(None, topic_id, error.code, error.message))
        else:
            found[topic_id] = topic
    for name, times in names.items():
        topic = image.topics.get(name)
        if times > 1:
            continue
        if topic is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            results.append(DeleteTopicResult(name, ZERO_UUID, error.code, error.message))
        elif topic.topic_id in ids:
            found.pop(topic.topic_id, None)
            text = "The provided topic name maps to an ID that was already supplied."
            results.append(_invalid_delete(name, topic.topic_id, text))
        else:
            found[topic.topic_id] = topic

    records = tuple(m.RemoveTopicRecord(topic_id=topic_id) for topic_id in found)
    check_operation_size(len(records))
    results += [DeleteTopicResult(topic.name, topic_id) for topic_id, topic in found.items()]
    return Decision(records, tuple(results))


def _invalid_delete(name: str | None, topic_id: bytes, text: str) -> DeleteTopicResult:
    return DeleteTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, text)


# -- more partitions --------------------------------------------------------------------------------


def create_partitions(state: ControllerState, event: CreatePartitions, moment: Moment) -> Decision:
    """Add partitions to topics; existing partitions are not changed."""
    by_name: dict[str, NewPartitions] = {}
    duplicates: dict[str, None] = {}
    for topic in event.topics:
        if topic.name in by_name:
            duplicates[topic.name] = None
        by_name[topic.name] = topic
    results = [
        CreatePartitionsResult(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name in duplicates
    ]
    records: list[object] = []
    for number, topic in enumerate(t for t in by_name.values() if t.name not in duplicates):
        if topic.name not in state.image.topics:
            # Kafka sends no text with this code.
            results.append(CreatePartitionsResult(topic.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        try:
            records += _create_partitions(state, topic, moment.seed + number)
        except KafkaError as error:
            results.append(CreatePartitionsResult(topic.name, error.code, error.message))
        else:
            results.append(CreatePartitionsResult(topic.name))
    check_operation_size(len(records))
    return Decision(() if event.validate_only else tuple(records), tuple(results))


def _create_partitions(state: ControllerState, asked: NewPartitions, seed: int) -> list[object]:
    topic = state.image.topics[asked.name]
    existing = len(topic.partitions)
    if asked.total_count == existing:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partition(s).")
    if asked.total_count < existing:
        text = (
            f"The topic {asked.name} currently has {existing} partition(s); "
            f"{asked.total_count} would not be an increase."
        )
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    additional = asked.total_count - existing
    if asked.assignments is not None and len(asked.assignments) != additional:
        raise _bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only {len(asked.assignments)} "
            "assignment(s) were specified."
        )
    check_operation_size(additional)
    factor = len(topic.partitions[0].replicas)
    partitions = []
    if asked.assignments is None:
        placed = place_replicas(state.image.brokers.values(), additional, factor, seed)
        partitions = [_new_partition(state, n, replicas) for n, replicas in enumerate(placed, existing)]
    else:
        for number, replicas in enumerate(asked.assignments, existing):
            check_manual_assignment(state, replicas, factor)
            partitions.append(_by_hand_partition(state, number, replicas))
    return [partition.to_record(topic.topic_id) for partition in partitions]
