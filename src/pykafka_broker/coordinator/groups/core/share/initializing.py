"""Partitions need a state at the share coordinator before members can have them (KIP-932).

A heartbeat notes subscribed partitions without a state as *initializing* and requests states for them. When
the states exist, the partitions become *initialized*, and the next heartbeat makes a target with them. If the
request fails, the partitions stop being *initializing*, so that the next heartbeat requests their states
again. A request that gets no answer is repeated after `group.share.initialize.retry.interval.ms`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.share.events import (
    AlteredShareOffsets,
    InitializeShareState,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.records import UNKNOWN_TOPIC_NAME, partitions_in_order
from pykafka_broker.coordinator.groups.core.share.state import (
    NO_PARTITIONS,
    NamedPartitions,
    PartitionsByTopic,
    ShareGroup,
    StatePartitions,
)
from pykafka_broker.coordinator.groups.core.share.turn import ShareTurn
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode

#: Leaves the start offset to the leader that first needs it, by `share.auto.offset.reset`.
UNKNOWN_START_OFFSET = -1


def is_assignment_pending(group: ShareGroup, topics: TopicDirectory) -> bool:
    """Do the targets differ from the partitions of subscribed topics that have a state?

    Topics that do not exist do not count: one may have been deleted while no shard served the group.
    """
    if group.states is None or not group.members:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        group.is_subscribed_to(named.topic_name)
        and assigned.get(topic_id) != set(named.partitions)
        and topics.topic_by_id(topic_id) is not None
        for topic_id, named in group.states.initialized.items()
    )


def initialize_subscribed(turn: ShareTurn) -> None:
    """Request states for those partitions of subscribed topics that have none."""
    missing = missing_states(turn)
    if not missing:
        return
    note_initializing(turn, missing)
    topics = (
        (topic_id, tuple((partition, UNKNOWN_START_OFFSET) for partition in named.partitions))
        for topic_id, named in missing.items()
    )
    turn.start(InitializeShareState(turn.group_id, turn.group.group_epoch, tuple(topics)))


def missing_states(turn: ShareTurn) -> PartitionsByTopic:
    """The partitions that need a state: subscribed, with none made and none asked for a short while ago."""
    group = turn.group
    states = group.states or StatePartitions()
    age_ms = turn.now_ms - group.states_written_ms
    is_fresh = age_ms < turn.config.share_group_initialize_retry_interval_ms
    known = combined(states.initialized, states.initializing if is_fresh else NO_PARTITIONS)
    missing: dict[bytes, NamedPartitions] = {}
    for name in group.name_counts:
        topic = turn.groups.topics.topic(name)
        if topic is None:
            continue
        has_state = known[topic.topic_id].partitions if topic.topic_id in known else ()
        if not has_state or len(has_state) < topic.partition_count:
            rest = (partition for partition in range(topic.partition_count) if partition not in has_state)
            missing[topic.topic_id] = NamedPartitions(topic.name, tuple(rest))
    return missing


def note_initializing(turn: ShareTurn, topics: PartitionsByTopic) -> None:
    """Note partitions as initializing; their topics are not being deleted any more."""
    states = turn.group.states or StatePartitions()
    initializing = combined(states.initializing, topics)
    deleting = tuple(topic_id for topic_id in states.deleting if topic_id not in initializing)
    turn.write_states(states._replace(initializing=initializing, deleting=deleting))


def combined(some: PartitionsByTopic, others: PartitionsByTopic) -> PartitionsByTopic:
    """The partitions of both; a topic in both has its name from the second."""
    result = dict(some)
    for topic_id, named in others.items():
        before = some[topic_id].partitions if topic_id in some else ()
        partitions = partitions_in_order(sorted({*before, *named.partitions}))
        result[topic_id] = NamedPartitions(named.topic_name, partitions)
    return result


def without(topics: PartitionsByTopic, gone: Mapping[bytes, Collection[int]]) -> PartitionsByTopic:
    """The partitions without those in `gone`, and without topics that are left empty."""
    result = {}
    for topic_id, named in topics.items():
        if topic_id not in gone:
            result[topic_id] = named
            continue
        left = tuple(partition for partition in named.partitions if partition not in gone[topic_id])
        if left:
            result[topic_id] = NamedPartitions(named.topic_name, left)
    return result


def named_now(topics: Mapping[bytes, tuple[int, ...]], directory: TopicDirectory) -> PartitionsByTopic:
    """Partitions with the names that their topics have now."""
    found = {topic_id: directory.topic_by_id(topic_id) for topic_id in topics}
    return {
        topic_id: NamedPartitions(UNKNOWN_TOPIC_NAME if topic is None else topic.name, topics[topic_id])
        for topic_id, topic in found.items()
    }


# ---- the outcome ----


def on_initialized(
    groups: Groups, event: ShareStateInitialized, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Take in the outcome of an initialization; one failed state fails all states of the work.

    An AlterShareGroupOffsets that fails leaves its partitions initializing, as in Apache Kafka 4.3.
    """
    failed = any(error is not ErrorCode.NONE for _, errors in event.topics for _, error, _ in errors)
    work = event.work
    if work.token is not None and failed:
        assert work.answer is not None, work
        return Step(groups, effects=(Reply(work.token, _with_errors(work.answer, event)),))
    state, records, effects = noted(groups, event, config, failed=failed)
    if work.token is not None:
        effects = (Reply(work.token, work.answer), *effects)
    return Step(state, records, effects)


def noted(
    groups: Groups, event: ShareStateInitialized, config: GroupCoordinatorConfig, *, failed: bool
) -> Step[Groups]:
    """Write that these states are there, or that they are not being made any more."""
    group = groups.share(event.work.group_id)
    done = {topic_id: tuple(partition for partition, _, _ in errors) for topic_id, errors in event.topics}
    if group is None or not done:
        return Step(groups)
    turn = ShareTurn(groups, group, event.now_ms, config)
    states = group.states or StatePartitions()
    if not failed:
        initialized = combined(states.initialized, named_now(done, groups.topics))
        initializing = without(states.initializing, done)
        turn.write_states(states._replace(initializing=initializing, initialized=initialized))
    elif states.initializing:
        turn.write_states(states._replace(initializing=without(states.initializing, done)))
    return turn.step()


def _with_errors(answer: AlteredShareOffsets, event: ShareStateInitialized) -> AlteredShareOffsets:
    errors = {
        (topic_id, partition): (partition, error, message)
        for topic_id, partitions in event.topics
        for partition, error, message in partitions
        if error is not ErrorCode.NONE
    }
    topics = tuple(
        (
            topic,
            topic_id,
            tuple(
                each if each[1] is not ErrorCode.NONE else errors.get((topic_id, each[0]), each)
                for each in partitions
            ),
        )
        for topic, topic_id, partitions in answer.topics
    )
    return AlteredShareOffsets(topics=topics)
