"""The committed offsets of a group, with their metadata, read with `require_stable` (OffsetFetch v7+): the
coordinator refuses offsets that an open transaction may still change.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.conversation import Ask, Conversation
from pykafka_broker.client.core.coordinators import find_coordinator
from pykafka_broker.client.core.metadata import Brokers
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.patience import patiently
from pykafka_broker.client.core.retries import Attempt
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from pykafka_broker.protocol.topic_partition import PartitionKey, by_topic

#: The last version with topic names, not ids.
_AT_MOST = 9


def fetch_stable_offsets(
    brokers: Brokers, group: str, partitions: Iterable[PartitionKey], attempt: Attempt
) -> Conversation[dict[PartitionKey, CommittedOffset]]:
    """The committed offsets of these partitions; those without one are left out.

    Raises:
        KafkaError, OSError: the error of the last attempt, or one that is not temporary.
    """
    indexes = by_topic(partitions)
    entries = [OffsetFetchRequestTopics(name=name, partition_indexes=ps) for name, ps in indexes.items()]
    # Up to version 7 `group_id` and `topics` are encoded, from version 8 on `groups`.
    request = OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=ps) for name, ps in indexes.items()],
        groups=[OffsetFetchRequestGroup(group_id=group, topics=entries)],
        require_stable=True,
    )

    def once(attempt: Attempt) -> Conversation[dict[PartitionKey, CommittedOffset]]:
        node_id = yield from find_coordinator(brokers, group, attempt)
        response: OffsetFetchResponse = (yield Ask(request, node_id, at_most=_AT_MOST)).response
        answer = response.groups[0] if response.groups else response
        check(answer.error_code)
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                check(partition.error_code)
                if partition.committed_offset >= 0:
                    found[topic.name, partition.partition_index] = CommittedOffset(
                        partition.committed_offset, partition.metadata or ""
                    )
        return found

    return (yield from patiently(once, attempt))
