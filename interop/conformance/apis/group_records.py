"""The records of groups in `__consumer_offsets`: each that a coordinator writes, in its order.

How a coordinator puts records together into batches is its own affair; what stands in them is read by others.
"""

from __future__ import annotations

import time

from interop.conformance.conversation import conversation
from interop.conformance.groups import (
    Member,
    a_group,
    a_member,
    beating,
    committing,
    joined,
    joining,
    leaving,
    one,
    syncing,
    two_members,
)
from interop.conformance.normalise import Tree, tree_of
from interop.conformance.sabotage import spoil_number
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, E, Talk
from interop.conformance.transactions import Producer
from pykafka_broker.coordinator.groups.core.offset_record import KEY_TYPES
from pykafka_broker.coordinator.groups.core.record import Record, decode_record
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.leave_group import MemberIdentity
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.records.group import OffsetCommitValue
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka_broker.protocol.records.batch import iter_batches, read_records

OFFSETS_TOPIC = "__consumer_offsets"
#: The newest that names topics.
FETCH_VERSION = 12


def records_of(talk: Talk, group: str) -> list[Record]:
    """The group's records since the log began."""
    found: list[Record] = []
    offset = 0
    while True:
        asked = FetchPartition(
            partition=talk.coordinators_partition, fetch_offset=offset, partition_max_bytes=10_000_000
        )
        answer = talk.do(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=10_000_000,
                topics=[FetchTopic(topic=OFFSETS_TOPIC, partitions=[asked])],
            ),
            version=FETCH_VERSION,
        )
        data = bytes(answer.responses[0].partitions[0].records or b"")
        before = offset
        for position, header in iter_batches(data):
            offset = header.next_offset
            if header.is_control:
                continue
            for each in read_records(data[position : position + header.size_in_bytes]):
                record = None if each.key is None else decoded(each.key, each.value)
                if record is not None and group in (
                    getattr(record.key, "group", None),
                    getattr(record.key, "group_id", None),
                ):
                    found.append(record)
        if offset == before:
            return found


def decoded(key: bytes, value: bytes | None) -> Record | None:
    """A record as it stands in the log: the coordinator reads those of offsets into something of its own."""
    key_type = KEY_TYPES.get(int.from_bytes(key[:2]))
    if key_type is None:
        record = decode_record(key, value)
        assert record is None or isinstance(record, Record)
        return record
    place: object
    place, _ = decode(key_type, 0, key, 2)
    if value is None:
        return Record(place, None)
    version = int.from_bytes(value[:2])
    committed, _ = decode(OffsetCommitValue, version, value, 2)
    return Record(place, committed, version)


def written(talk: Talk, group: str, count: int) -> None:
    """Compare the `count` records that the group has left behind by now."""
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    while len(found := records_of(talk, group)) < count and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    if len(found) != count:
        talk.transcript.unexpected.append(f"{len(found)} records instead of {count}")
    for number, record in enumerate(found, 1):
        if talk.side.sabotaged and record.value is not None:
            spoil_number(record.value, record.value_version)
        talk.note(f"record {number}", view_of(record, talk))


def view_of(record: Record, talk: Talk) -> Tree:
    key = tree_of(record.key, 0, talk.names)
    if record.value is None:
        return {"key": key, "value": "deleted"}
    value = tree_of(record.value, record.value_version, talk.names)
    return {"key": key, "version": record.value_version, "value": value}


@conversation
def a_member_comes_and_goes(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id))
    member = Member(group, given.member_id, 1)
    talk.ask(syncing(member, {member.id: b"assignment"}))
    talk.ask(leaving(group, one(member)))
    written(talk, group, 3)


@conversation
def a_group_that_is_joined_with_nothing_to_offer_is_written_down_all_the_same(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, protocols={}), E.INCONSISTENT_GROUP_PROTOCOL)
    written(talk, group, 1)


@conversation
def a_rebalance_writes_when_it_is_assigned(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, _ = two_members(talk, group)
    talk.ask(beating(leader))
    written(talk, group, 3)
    assert follower.generation == 2


@conversation
def the_last_to_leave_a_rebalance_empties_the_group(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group)
    talk.ask(leaving(group, one(member)))
    written(talk, group, 2)


@conversation
def an_instance_restarts_and_is_removed_by_an_administrator(talk: Talk) -> None:
    group = a_group(talk)
    instance = f"{group}-i"
    a_member(talk, group, instance=instance)
    talk.ask(joining(group, instance=instance, session_timeout_ms=20_000, rebalance_timeout_ms=40_000))
    talk.ask(leaving(group, MemberIdentity(member_id="", group_instance_id=instance)))
    written(talk, group, 4)


@conversation
def offsets_come_and_go(talk: Talk) -> None:
    group = a_group(talk)
    topic = talk.topic(partitions=2)
    talk.ask(committing(group, topic, {0: 5, 1: 6}, metadata="text", leader_epoch=3))
    talk.ask(committing(group, topic, {0: 7}, metadata=None), version=9)
    talk.do(committing(group, topic, {1: 8}), version=5)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 0)]
    talk.ask(
        OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=topic.name, partitions=partitions)]
        )
    )
    talk.ask(DeleteGroupsRequest(groups_names=[group]))
    # The tombstones of partition 0 (it was named twice) and 1, and that of the group.
    written(talk, group, 4 + 2 + 1 + 1)


@conversation
def offsets_with_a_retention_of_their_own(talk: Talk) -> None:
    group = a_group(talk)
    topic = talk.topic()
    request = committing(group, topic, {0: 5}, metadata="text")
    request.retention_time_ms = 30_000
    talk.do(request, version=2)
    written(talk, group, 1)


@conversation
def offsets_of_a_transaction(talk: Talk) -> None:
    group = a_group(talk)
    topic = talk.topic()
    producer = Producer(talk)
    producer.adds_offsets(group)
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=2, committed_metadata="about it"
    )
    talk.ask(
        TxnOffsetCommitRequest(
            transactional_id=producer.id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic.name, partitions=[partition])],
        )
    )
    producer.ends()
    written(talk, group, 1)
