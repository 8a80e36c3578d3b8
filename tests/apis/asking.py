"""Short words for the requests that many tests send, and for the versions they are sent in.

Where versions name topics by id, a topic is its 16 bytes instead of its name.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any

from pykafka_broker.apis.api import Api
from pykafka_broker.protocol.messages import fetch as fetching
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import join_group as joining
from pykafka_broker.protocol.messages import list_offsets as listing
from pykafka_broker.protocol.messages import offset_commit as committing
from pykafka_broker.protocol.messages import offset_fetch as offset_fetching
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.messages import sync_group as syncing
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.support.members import NO_MEMBER, Member

Topic = str | bytes
NO_ID = bytes(16)
UNKNOWN_ID = b"\x07" * 16

#: Where a batch has its length, magic, checksum and attributes.
LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT = 8, 16, 17, 21


def ends(api: Api[Any], since: int | None = None) -> list[int]:
    """The lowest and the highest version served; `since` raises the lowest."""
    lowest = api.min_version if since is None else since
    return sorted({lowest, api.max_version})


def every(api: Api[Any]) -> list[int]:
    """All versions served."""
    return list(range(api.min_version, api.max_version + 1))


def named(topic: Topic, field: str = "name") -> dict[str, Any]:
    """The keyword by which a request names `topic`."""
    return {field: topic} if isinstance(topic, str) else {"topic_id": topic}


# --- records ------------------------------------------------------------------------------------------


def batch(*values: bytes, key: bytes | None = b"key", timestamp: int = 0, **details: Any) -> bytes:
    """One record batch of these values."""
    return build_batch([(timestamp, key, value, ()) for value in values], BatchFields(**details))


def patched(records: bytes, position: int, data: bytes) -> bytes:
    """`records` with other bytes at a position, and a checksum that is right again."""
    changed = bytearray(records)
    changed[position : position + len(data)] = data
    struct.pack_into(">I", changed, CRC_AT, crc32c(bytes(changed[ATTRIBUTES_AT:])))
    return bytes(changed)


def producing_to(
    topic: Topic,
    records: bytes | None,
    partition: int = 0,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> Any:
    """A Produce request of one partition."""
    data = producing.PartitionProduceData(index=partition, records=records)
    asked = producing.TopicProduceData(**named(topic), partition_data=[data])
    return producing.ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=1_000, topic_data=[asked]
    )


async def open_transaction(home: Home, topic: str, producer_id: int, *values: bytes, age_ms: int = 0) -> None:
    """Append what a transactional producer writes, as its coordinator would let it."""
    partition = home.broker.node.broker.replicas.led(topic, 0)
    assert partition is not None
    now_ms = home.clock.now_ms()
    producer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    records = batch(*values, timestamp=now_ms - age_ms, transactional=True, **producer)
    guard = partition.log.writer.start_verification(producer_id, 0, 0, bumps_epoch=True, now_ms=now_ms)
    appended = partition.append(records, required_acks=-1, produce_version=12, now_ms=now_ms, guard=guard)
    if isinstance(appended, Awaitable):
        await appended


async def end_transaction(home: Home, topic: str, producer_id: int, *, commit: bool) -> None:
    """Append the marker that a transaction coordinator writes at the end."""
    partition = home.broker.node.broker.replicas.led(topic, 0)
    assert partition is not None
    now_ms = home.clock.now_ms()
    marker = build_marker_batch(
        EndTransactionMarker(commit, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=now_ms
    )
    end_offset = partition.append_marker(marker, now_ms, 0)
    if isinstance(end_offset, Awaitable):
        await end_offset


def begin_epoch(
    home: Home, topic: str, leader_epoch: int, partitions: Iterable[int], leader: int = 1
) -> None:
    """Let a broker lead these partitions in a new epoch, which has to be written down before a record."""
    image = home.broker.node.image
    changed = {
        index: each._replace(
            leader=leader,
            leader_epoch=leader_epoch,
            partition_epoch=each.partition_epoch + leader_epoch,
        )
        if index in partitions
        else each
        for index, each in image.topics[topic].partitions.items()
    }
    topics = {**image.topics, topic: image.topics[topic]._replace(partitions=changed)}
    home.broker.node.broker.replicas.apply(image._replace(topics=topics))


# --- fetch --------------------------------------------------------------------------------------------


def wanting(
    topic: Topic,
    offset: int = 0,
    partition: int = 0,
    *,
    max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> Any:
    """One partition of a fetch."""
    wanted = fetching.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    return fetching.FetchTopic(**named(topic, "topic"), partitions=[wanted])


def fetching_of(*wanted: Any, max_wait_ms: int = 0, min_bytes: int = 1, **details: Any) -> Any:
    """A Fetch request of what `wanting` makes; sessionless unless said otherwise."""
    return fetching.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=list(wanted), **details)


def partitions_of(answer: Any) -> list[Any]:
    """All partitions of a Produce, Fetch or offsets answer, in order."""
    topics = answer.responses if hasattr(answer, "responses") else answer.topics
    field = "partition_responses" if answer.__class__.__name__ == "ProduceResponse" else "partitions"
    return [partition for topic in topics for partition in getattr(topic, field)]


async def parked(home: Home, asking: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Ask, and return when the broker waits for something: it has set a timer more than before."""
    before = home.clock.pending_timers
    task = asyncio.ensure_future(asking)
    await until(lambda: home.clock.pending_timers > before or task.done())
    assert not task.done(), f"answered at once: {task.result()}"
    return task


# --- offsets ------------------------------------------------------------------------------------------


def offsets_at(
    topic: str, timestamp: int, partition: int = 0, *, leader_epoch: int = -1, isolation_level: int = 0
) -> Any:
    """A ListOffsets request of one partition."""
    wanted = listing.ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
    )
    return listing.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[listing.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )


# --- groups -------------------------------------------------------------------------------------------


async def coordinated(user: User) -> None:
    """Make `__consumer_offsets` exist."""
    await user.send(finding.FindCoordinatorRequest(key="any", key_type=0), 3)


def joining_of(
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    protocols: Iterable[tuple[str, bytes]] = (("range", b"subscription"),),
    session_timeout_ms: int = 10_000,
    protocol_type: str = "consumer",
) -> Any:
    """A JoinGroup request."""
    return joining.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[joining.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
    )


def syncing_of(
    group: str, member: str, generation: int, assigned: dict[str, bytes] | None = None, **details: Any
) -> Any:
    """A SyncGroup request; the leader brings what is `assigned`."""
    assignments = [
        syncing.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
        for member_id, assignment in (assigned or {}).items()
    ]
    details = {"protocol_type": "consumer", "protocol_name": "range", **details}
    return syncing.SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member, assignments=assignments, **details
    )


async def only_member(user: User, group: str, **details: Any) -> str:
    """Join an empty group as its only member and assign; the member id, in generation 1."""
    await coordinated(user)
    joined = await user.send(joining_of(group, **details), 3)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    member: str = joined.member_id
    synced = await user.send(syncing_of(group, member, 1, {member: b"all"}), 3)
    assert synced.error_code == 0
    return member


def committing_of(
    group: str,
    topic: Topic,
    offset: int,
    partition: int = 0,
    *,
    member: Member = NO_MEMBER,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> Any:
    """An OffsetCommit request of one partition."""
    committed = committing.OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        committed_metadata=metadata,
    )
    return committing.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
        topics=[committing.OffsetCommitRequestTopic(**named(topic), partitions=[committed])],
    )


def offsets_of(group: str, *topics: tuple[Topic, list[int]]) -> Any:
    """An OffsetFetch request of v8 and later; of all topics if none is named."""
    asked = [
        offset_fetching.OffsetFetchRequestTopics(**named(topic), partition_indexes=partitions)
        for topic, partitions in topics
    ]
    wanted = offset_fetching.OffsetFetchRequestGroup(group_id=group, topics=asked or None)
    return offset_fetching.OffsetFetchRequest(groups=[wanted])
