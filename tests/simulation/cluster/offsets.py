"""Committed offsets of groups: one request to the coordinator, a client that commits from outside, and
one that looks at all of them in the end.
"""

from __future__ import annotations

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.client.core.coordinators import find_coordinator
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.simulation.cluster.client import REQUEST_MS, RETRY_MS, TOPIC, Client, ask
from tests.simulation.cluster.ledger import Committed

#: The newest versions that name topics.
_COMMIT_VERSION, _FETCH_VERSION = 9, 9


async def commit(client: Client, group: str, pause_ms: int) -> None:
    """Commit one offset after the other as a group without members, and look what is committed."""
    offset = 0
    while not client.is_over:
        await client.pause(pause_ms)
        try:
            node_id = await client.run(find_coordinator(client.brokers, group, client.attempt(REQUEST_MS)))
            if client.world.happens(0.7):
                offset += 1
                await commit_one(client, node_id, group, offset)
            else:
                await look_at_committed(client, node_id, group)
        except CANNOT:
            continue


async def commit_one(
    client: Client,
    node_id: int,
    group: str,
    offset: int,
    *,
    partition: int = 0,
    member_id: str = "",
    generation: int = -1,
) -> int:
    """Commit an offset as this member, or as none; return the error code."""
    key = Committed(group, partition)
    client.ledger.commits(key, offset)
    committing = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[committing])],
    )
    answer = await client.run(ask(request, node_id, at_most=_COMMIT_VERSION))
    code: int = answer.topics[0].partitions[0].error_code
    if not code:
        client.ledger.committed(key, offset)
    return code


async def look_at_committed(client: Client, node_id: int, group: str, partition: int = 0) -> int | None:
    """The committed offset, -1 without one; None if the coordinator does not say.

    One that is cut off from the controllers, and does not know that another one has taken over, answers what
    was committed before: so does Apache Kafka's, for brokers serve on while no controller is there.
    """
    key = Committed(group, partition)
    known = client.ledger.known(key)
    asked = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[partition])]
    )
    request = OffsetFetchRequest(groups=[asked], require_stable=True)
    answer = (await client.run(ask(request, node_id, at_most=_FETCH_VERSION))).groups[0]
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        return None
    if not client.clients.is_coordinator(node_id, group):
        return None
    offset: int = answer.topics[0].partitions[0].committed_offset
    client.ledger.fetched(key, offset, known)
    return offset


async def look_at_all(client: Client) -> None:
    """Look at every offset that the ledger knows of, each until the coordinator says what is committed."""
    for group, partition in client.ledger.offsets():
        found = None
        while found is None:
            try:
                node_id = await client.run(
                    find_coordinator(client.brokers, group, client.attempt(REQUEST_MS))
                )
                found = await look_at_committed(client, node_id, group, partition)
            except CANNOT:
                pass
            if found is None:
                await client.pause(RETRY_MS)
