"""ListPartitionReassignments (46): the partitions that are getting other replicas, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pykafka_broker.apis.list_partition_reassignments import list_partition_reassignments
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from pykafka_broker.testing.user import User


async def listed(user: User, topics: Iterable[tuple[str, list[int]]] | None = None) -> dict[str, Any]:
    asked = None
    if topics is not None:
        asked = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics
        ]
    request = ListPartitionReassignmentsRequest(topics=asked)
    answer = await user.send(request, list_partition_reassignments.max_version)
    assert (answer.error_code, answer.error_message) == (0, None)
    return {topic.name: topic.partitions for topic in answer.topics}


async def test_on_one_node_nothing_moves(user: User) -> None:
    await user.create_topic("t", 2)

    assert await listed(user) == await listed(user, [("t", [0, 1, 7]), ("u", [0])]) == {}
    assert await listed(user, []) == {}
