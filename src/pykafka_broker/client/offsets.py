"""The offsets of partitions and of groups: ListOffsets, OffsetFetch and OffsetCommit.

Over the blocking client, which asks the leader or the coordinator of each. Offsets are committed without
membership, as by tools and by programs that assign themselves partitions: the group must have no members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import partition_error, topic_error
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey

#: Special timestamps of ListOffsets.
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
#: The last version of OffsetFetch and OffsetCommit with topic names; later ones have topic ids.
_LAST_WITH_NAMES = 9
#: The first version of OffsetFetch that asks about several groups.
_FIRST_WITH_GROUPS = 8

#: The errors with which a coordinator refuses a commit without membership if the group has members.
HAS_MEMBERS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)

#: The errors of partitions without a leader, and those that pass when another broker leads them.
_LEADERLESS = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
_PASSING = RETRIABLE | {
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LISTENER_NOT_FOUND,
}


# -- of partitions
# ----------------


def list_offsets(
    client: Client, times: Mapping[PartitionKey, int], *, missing_ok: bool = False, isolation_level: int = 0
) -> dict[PartitionKey, int]:
    """The first offset at or after each time, -1 if there is none: of all partitions, or an error.

    Raises:
        KafkaError, OSError: a partition does not exist (unless `missing_ok`), or cannot be read now.
    """

    def once() -> dict[PartitionKey, int]:
        found, failed = _list_offsets(client, times, isolation_level)
        for error in failed:
            if not (missing_ok and _code(error) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise error
        return found

    return client.retrying(once)


def told_offsets(
    client: Client, times: Mapping[PartitionKey, int], *, isolation_level: int = 0, at_once: bool = False
) -> dict[PartitionKey, int]:
    """As `list_offsets`, but without the partitions whose leaders tell none: at once where there is no such
    partition or no leader (as kafka-consumer-groups.sh, which shows "-" for them), after the time-out where
    the leader does not answer, or another one is not known yet; with `at_once`, always at once.

    Raises:
        KafkaError, OSError: no broker answers, or the client may not ask.
    """
    for is_last in client.attempts():
        found, failed = client.retrying(lambda: _list_offsets(client, times, isolation_level))
        for error in failed:
            if _code(error) not in _LEADERLESS | _PASSING:
                raise error
        if is_last or at_once or _LEADERLESS.issuperset(map(_code, failed)):
            return found
    raise AssertionError("attempts end with a last one")


def _code(error: KafkaError | OSError) -> ErrorCode:
    """The code of an error; that of a broker that does not answer is BROKER_NOT_AVAILABLE."""
    return error.code if isinstance(error, KafkaError) else ErrorCode.BROKER_NOT_AVAILABLE


def _list_offsets(
    client: Client, times: Mapping[PartitionKey, int], isolation_level: int
) -> tuple[dict[PartitionKey, int], list[KafkaError | OSError]]:
    """The offsets that leaders tell, and the errors of the other partitions."""
    from pykafka_broker.protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    found: dict[PartitionKey, int] = {}
    failed: list[KafkaError | OSError] = []
    by_leader: dict[int, dict[str, list[Any]]] = {}
    asked: dict[str, list[int]] = {}
    for topic, partition in times:
        asked.setdefault(topic, []).append(partition)
    for described in client.metadata(sorted(asked)).topics:
        topic = described.name or ""
        places = {place.partition_index: place for place in described.partitions}
        for partition in asked[topic]:
            place = places.get(partition)
            if described.error_code:
                failed.append(topic_error(described.error_code, topic))
            elif place is None:
                failed.append(partition_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition))
            elif place.error_code:
                failed.append(partition_error(place.error_code, topic, partition))
            else:
                entry = ListOffsetsPartition(partition_index=partition, timestamp=times[topic, partition])
                by_leader.setdefault(place.leader_id, {}).setdefault(topic, []).append(entry)
    for leader, topics in by_leader.items():
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )
        try:
            answers = client.send(request, leader).topics
        except (KafkaError, OSError) as error:
            failed.append(error)
            continue
        for topic_answer in answers:
            for answer in topic_answer.partitions:
                key = (topic_answer.name, answer.partition_index)
                if answer.error_code:
                    failed.append(partition_error(answer.error_code, *key))
                else:
                    found[key] = answer.offset
    return found, failed


# -- of groups
# ------------


def committed_offsets(client: Client, coordinator: int, group: str) -> dict[PartitionKey, int]:
    """Every committed offset of a group."""
    return {
        partition: committed.offset
        for partition, committed in committed_with_metadata(client, coordinator, group).items()
    }


def committed_with_metadata(
    client: Client, coordinator: int, group: str
) -> dict[PartitionKey, CommittedOffset]:
    """Every committed offset of a group, with the text that was committed along."""
    [answer] = _fetched(client, coordinator, [group])
    check(answer.error_code)
    return _commits(answer)


def committed_of_groups(
    client: Client, coordinator: int, groups: Sequence[str]
) -> dict[str, dict[PartitionKey, CommittedOffset]]:
    """As `committed_with_metadata`, of many groups together; without those that are not told."""
    answers = _fetched(client, coordinator, groups)
    return {
        group: _commits(answer)
        for group, answer in zip(groups, answers, strict=True)
        if not answer.error_code
    }


def _fetched(client: Client, coordinator: int, groups: Sequence[str]) -> list[Any]:
    """What OffsetFetch answers about each group: to one request from v8 (Kafka 3.0) on, else to one each."""
    from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    connection = client.connection(coordinator)
    version = min(_LAST_WITH_NAMES, connection.newest_version(OffsetFetchRequest()))
    if version < _FIRST_WITH_GROUPS:
        alone = [OffsetFetchRequest(group_id=group, topics=None) for group in groups]
        return [connection.send(request, version) for request in alone]
    asked = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    answers = connection.send(OffsetFetchRequest(groups=asked), version).groups
    by_group = {answer.group_id: answer for answer in answers}
    return [by_group[group] for group in groups]


def _commits(answer: Any) -> dict[PartitionKey, CommittedOffset]:
    return {
        (topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.metadata or ""
        )
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


def commit_offsets(
    client: Client,
    coordinator: int,
    group: str,
    offsets: Mapping[PartitionKey, int],
    metadata: str = "",
) -> None:
    """Commit offsets without membership, each with the text `metadata`.

    Raises:
        KafkaError: the coordinator refused one of them.
    """
    from pykafka_broker.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=ps) for topic, ps in by_topic.items()],
    )
    connection = client.connection(coordinator)
    response = connection.send(request, min(_LAST_WITH_NAMES, connection.newest_version(request)))
    for topic in response.topics:
        for partition in topic.partitions:
            check(partition.error_code)


def commit_until_done(
    client: Client, group: str, offsets: Mapping[PartitionKey, int], metadata: str = ""
) -> None:
    """Commit offsets without membership; retries while the group's coordinator moves or loads.

    Raises:
        KafkaError: the group has members, or the coordinator refuses for another reason.
    """
    try:
        client.at_coordinator(
            group, lambda node_id: commit_offsets(client, node_id, group, offsets, metadata)
        )
    except KafkaError as error:
        if error.code in HAS_MEMBERS:
            raise KafkaError(
                error.code,
                f"Group '{group}' has members, which commit for themselves: take another group, or "
                "stop its consumers.",
            ) from None
        raise
