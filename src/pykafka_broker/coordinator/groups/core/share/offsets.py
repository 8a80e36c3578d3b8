"""The start offsets of a share group: AlterShareGroupOffsets and DeleteShareGroupOffsets.

The share coordinator keeps the start offsets. A group knows which partitions have a state, and asks.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.share.events import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeletedShareTopic,
    DeleteShareOffsets,
    DeleteShareState,
    DeletionPurpose,
    InitializeShareState,
    ShareOutcomeRefused,
    ShareStateDeleted,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.initializing import note_initializing
from pykafka_broker.coordinator.groups.core.share.state import NamedPartitions, ShareGroup
from pykafka_broker.coordinator.groups.core.share.turn import ShareTurn, share_group, share_group_or_new
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID, uuid_text
from pykafka_broker.protocol.java_hash import int_hash, walked


def check_empty(group: ShareGroup) -> None:
    """Check that the group has no members: only then may offsets be changed.

    Raises:
        KafkaError: NON_EMPTY_GROUP.

    """
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)


# ---- AlterShareGroupOffsets ----


def on_alter(groups: Groups, event: AlterShareOffsets, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Initialize states again, at the requested offsets; the group is created if it is missing.

    Partitions that do not exist are refused alone.
    """
    try:
        group = share_group_or_new(groups, event.group_id)
        check_empty(group)
    except KafkaError as error:
        return refuse(groups, event.token, AlteredShareOffsets(error.code, error.message))
    turn = ShareTurn(groups, group, event.now_ms, config)
    initializing: dict[bytes, NamedPartitions] = {}
    offsets: dict[bytes, dict[int, int]] = {}
    answers = []
    for name, partitions in event.topics:
        topic = groups.topics.topic(name)
        count = 0 if topic is None else topic.partition_count
        answers.append(
            (
                name,
                ZERO_UUID if topic is None else topic.topic_id,
                tuple(_altered(partition, count) for partition, _ in partitions),
            )
        )
        if topic is None:
            continue
        known = offsets.setdefault(topic.topic_id, {})
        known.update((partition, offset) for partition, offset in partitions if partition < count)
        initializing[topic.topic_id] = NamedPartitions(name, tuple(walked(known, int_hash)))
    if initializing:
        note_initializing(turn, initializing)
    answer = AlteredShareOffsets(topics=tuple(answers))
    asked = tuple((topic_id, tuple(known.items())) for topic_id, known in offsets.items() if known)
    invalid = _negative_partition(asked)
    if invalid is not None:
        # The partitions stay initializing, as in Apache Kafka 4.3.
        topic_id, partition = invalid
        which = f"{event.group_id} {uuid_text(topic_id)} {partition}"
        message = f"Initialize share group parameters has invalid partitionId - {which}"
        turn.reply(event.token, AlteredShareOffsets(ErrorCode.UNKNOWN_SERVER_ERROR, message))
    elif asked:
        turn.start(InitializeShareState(event.group_id, group.group_epoch, asked, event.token, answer))
    else:
        turn.reply(event.token, answer)
    return turn.step()


def _altered(partition: int, count: int) -> tuple[int, ErrorCode, str | None]:
    if partition < count:
        return partition, ErrorCode.NONE, None
    return partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message


def _negative_partition(
    asked: tuple[tuple[bytes, tuple[tuple[int, int], ...]], ...],
) -> tuple[bytes, int] | None:
    """The first negative partition."""
    return next(
        ((topic_id, partition) for topic_id, offsets in asked for partition, _ in offsets if partition < 0),
        None,
    )


# ---- DeleteShareGroupOffsets ----


def on_delete(groups: Groups, event: DeleteShareOffsets, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Have the states of topics deleted; topics that do not exist or have none are refused alone."""
    try:
        group = share_group(groups, event.group_id)
        check_empty(group)
    except KafkaError as error:
        return refuse(groups, event.token, DeletedShareOffsets(error.code, error.message))
    if group.states is None:
        return refuse(groups, event.token, DeletedShareOffsets())
    turn = ShareTurn(groups, group, event.now_ms, config)
    initialized = dict(group.states.initialized)
    deleting = dict.fromkeys(group.states.deleting)
    asked: list[tuple[bytes, tuple[int, ...]]] = []
    refused = []
    for name in event.topics:
        topic = groups.topics.topic(name)
        if topic is None:
            refused.append(_not_deleted(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message))
        elif topic.topic_id in initialized:
            asked.append((topic.topic_id, initialized.pop(topic.topic_id).partitions))
            deleting[topic.topic_id] = None
        elif topic.topic_id in deleting:
            asked.append((topic.topic_id, tuple(range(topic.partition_count))))
        else:
            refused.append(_not_deleted(name, "There is no offset information to delete."))
    turn.write_states(group.states._replace(initialized=initialized, deleting=tuple(deleting)))
    if asked:
        work = DeleteShareState(
            event.token, event.group_id, DeletionPurpose.OFFSETS, tuple(asked), tuple(refused)
        )
        turn.start(work)
    else:
        turn.reply(event.token, DeletedShareOffsets(topics=tuple(refused)))
    return turn.step()


def _not_deleted(name: str, message: str) -> DeletedShareTopic:
    return DeletedShareTopic(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message)


def on_deleted(groups: Groups, event: ShareStateDeleted, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Forget deleted states. Failed ones stay marked as deleting, so that they can be requested again."""
    work = event.work
    names = {topic_id: groups.topics.topic_by_id(topic_id) for topic_id, _ in event.topics}
    gone: dict[bytes, str | None] = {}
    refused = list(work.refused)
    for topic_id, errors in event.topics:
        topic = names[topic_id]
        name = None if topic is None else topic.name
        failed = next((each for each in errors if each[1] is not ErrorCode.NONE), None)
        if failed is None:
            gone[topic_id] = name
        else:
            refused.append(DeletedShareTopic(name, topic_id, failed[1], failed[1].message))
    group = groups.share(work.group_id)
    if not gone or group is None or group.states is None:
        return Step(groups, effects=(Reply(work.token, DeletedShareOffsets(topics=tuple(refused))),))
    turn = ShareTurn(groups, group, event.now_ms, config)
    deleting = tuple(topic_id for topic_id in group.states.deleting if topic_id not in gone)
    turn.write_states(group.states._replace(deleting=deleting))
    deleted = (DeletedShareTopic(name, topic_id) for topic_id, name in gone.items())
    turn.reply(work.token, DeletedShareOffsets(topics=(*deleted, *refused)))
    return turn.step()


# ---- outcomes that could not be written down ----


def on_refused(groups: Groups, event: ShareOutcomeRefused) -> Step[Groups]:
    """Answer the caller. Offsets that the share coordinator has stored are altered all the same."""
    outcome = event.outcome
    if isinstance(outcome, ShareStateInitialized):
        assert outcome.work.token is not None, outcome
        return Step(groups, effects=(Reply(outcome.work.token, outcome.work.answer),))
    return Step(groups, effects=(Reply(outcome.work.token, event.error),))
