"""WriteTxnMarkers (27): the outcome of transactions, as coordinators and administrators write it."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.list_offsets import LATEST
from pykafka_broker.apis.write_txn_markers import write_txn_markers
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.transacting import Producer, committed_values


def marker(
    producer: Producer, *partitions: int, commit: bool = False, coordinator_epoch: int = 0, version: int = 0
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=list(partitions or (0,)))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )


async def written(user: User, *markers: WritableTxnMarker, version: int = 2) -> dict[int, list[Any]]:
    """By producer id: (topic, partition, error)."""
    answer = await user.send(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        result.producer_id: [
            (topic.name, each.partition_index, ErrorCode(each.error_code))
            for topic in result.topics
            for each in topic.partitions
        ]
        for result in answer.markers
    }


@pytest.mark.parametrize("version", every(write_txn_markers))
@pytest.mark.parametrize("commit", [True, False])
async def test_a_marker_ends_the_transaction_in_its_partitions(
    user: User, version: int, commit: bool
) -> None:
    await user.create_topic("t", 2)
    producer = await Producer.of(user, old=True)
    for partition in (0, 1):
        await producer.write("t", b"v", partition=partition)

    outcome = await written(user, marker(producer, 0, 1, commit=commit), version=version)

    assert outcome == {producer.id: [("t", 0, ErrorCode.NONE), ("t", 1, ErrorCode.NONE)]}
    assert await committed_values(user, "t") == ([b"v"] if commit else [])


async def test_each_partition_has_its_own_outcome(user: User) -> None:
    await user.create_topic("t")
    producer, other = await Producer.of(user, "a"), await Producer.of(user, "b", old=True)
    await producer.write("t", b"v")
    await other.write("t", b"w")

    outcome = await written(user, marker(producer, 0, 9, version=2), marker(other, 0))

    late = ErrorCode.INVALID_PRODUCER_EPOCH  # version 2 wants the epoch after that of the records
    assert outcome == {
        producer.id: [("t", 0, late), ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        other.id: [("t", 0, ErrorCode.NONE)],
    }


async def test_a_deposed_coordinator_is_fenced(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)
    await producer.write("t", b"v")
    await written(user, marker(producer, coordinator_epoch=5))
    producer.epoch += 1

    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await written(user, marker(producer, coordinator_epoch=4)) == {producer.id: [("t", 0, fenced)]}


async def test_a_partition_that_is_named_twice_gets_one_marker(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)
    offset = await producer.write("t", b"v")

    outcome = await written(user, marker(producer, 0, 0, commit=True))

    assert outcome == {producer.id: [("t", 0, ErrorCode.NONE)]}
    assert await user.offset_for("t", LATEST) == offset + 2  # the record and one marker


async def test_a_markers_place_in_the_groups_partition_is_kept(user: User) -> None:
    await user.create_topic("t")
    await user.find_coordinator("readers")
    producer = await Producer.of(user)
    assert await producer.try_to_commit("readers", "t", 7) == ErrorCode.NONE
    in_offsets = marker(producer, commit=True)
    in_offsets.topics = [WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[0])]

    assert await written(user, in_offsets) == {producer.id: [("__consumer_offsets", 0, ErrorCode.NONE)]}
    assert await user.committed("readers") == {("t", 0): 7}


@pytest.mark.parametrize("old", [True, False])
async def test_a_transaction_ends_although_its_topic_was_created_again_and_shows_nothing_there(
    user: User, old: bool
) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=old)
    await producer.write("t", b"before")
    await user.delete_topic("t")
    await user.create_topic("t")

    await producer.end(commit=True)

    producer.sequences.clear()
    await producer.write("t", b"after")
    await producer.end(commit=True)
    assert await committed_values(user, "t") == [b"after"]


async def test_no_markers_have_no_outcome(user: User) -> None:
    assert await written(user) == {}


async def test_a_marker_without_an_epoch_fails_together_with_all_others_of_its_request(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)
    await producer.write("t", b"v")
    without_epoch = marker(producer, 0)
    without_epoch.producer_id, without_epoch.producer_epoch = 77, -1

    outcome = await written(user, marker(producer, 0, commit=True), without_epoch)

    failed = [("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert outcome == {producer.id: failed, 77: failed}
    assert await committed_values(user, "t") == []


async def test_a_marker_without_partitions_is_not_answered(user: User) -> None:
    producer = await Producer.of(user)
    nowhere = marker(producer)
    nowhere.topics = []

    assert await written(user, nowhere) == {}
