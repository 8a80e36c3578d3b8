"""ListOffsets (2): the offset of a moment, or of one of a partition's special places."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.list_offsets import SEARCHES_AT_ONCE, list_offsets
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import (
    end_transaction,
    ends,
    every,
    offsets_at,
    open_transaction,
    partitions_of,
    producing_to,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
#: The first version that knows each of them.
SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
NONE_FOUND = (0, -1, -1, -1)


async def found(user: User, request: Any, version: int) -> tuple[int, int, int, int]:
    """Error, offset, timestamp and leader epoch of the only partition."""
    [answer] = partitions_of(await user.send(request, version))
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


async def timed(user: User) -> None:
    """A topic with records of these times, each in a batch of its own: 100, 300, 200, 400."""
    await user.create_topic("t")
    for timestamp in (100, 300, 200, 400):
        await user.produce("t", b"v", timestamp=timestamp)


@pytest.mark.parametrize("version", every(list_offsets))
async def test_a_time_finds_the_first_record_at_or_after_it(user: User, version: int) -> None:
    await timed(user)
    epoch = 0 if version >= 4 else -1

    for timestamp, offset, at in ((0, 0, 100), (100, 0, 100), (101, 1, 300), (300, 1, 300), (301, 3, 400)):
        assert await found(user, offsets_at("t", timestamp), version) == (0, offset, at, epoch)
    assert await found(user, offsets_at("t", 401), version) == NONE_FOUND


async def test_inside_a_batch_the_record_is_found_not_the_batch(user: User) -> None:
    await user.create_topic("t")
    await user.produce("t", b"a", timestamp=10)
    three = build_batch([(timestamp, None, b"v", ()) for timestamp in (20, 30, 40)])
    await user.send(producing_to("t", three), 12)

    assert await found(user, offsets_at("t", 25), 7) == (0, 2, 30, 0)


@pytest.mark.parametrize("version", every(list_offsets))
async def test_the_ends_of_a_partition(user: User, version: int) -> None:
    await timed(user)
    epoch = 0 if version >= 4 else -1

    assert await found(user, offsets_at("t", EARLIEST), version) == (0, 0, -1, epoch)
    for isolation_level in (0, 1) if version >= 2 else (0,):
        latest = offsets_at("t", LATEST, isolation_level=isolation_level)
        assert await found(user, latest, version) == (0, 4, -1, epoch)


@pytest.mark.parametrize("version", ends(list_offsets, since=11))
async def test_special_places_without_tiered_storage(user: User, version: int) -> None:
    await timed(user)

    assert await found(user, offsets_at("t", MAX_TIMESTAMP), version) == (0, 3, 400, 0)
    assert await found(user, offsets_at("t", EARLIEST_LOCAL), version) == (0, 0, -1, 0)
    assert await found(user, offsets_at("t", LATEST_TIERED), version) == NONE_FOUND
    assert await found(user, offsets_at("t", EARLIEST_PENDING), version) == NONE_FOUND


@pytest.mark.parametrize("version", every(list_offsets))
async def test_a_place_the_version_does_not_know_is_unsupported(user: User, version: int) -> None:
    await user.create_topic("t")
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)

    for place in range(-8, 0):
        got = await found(user, offsets_at("t", place), version)
        assert (got == unsupported) == (version < SINCE.get(place, 99)), place


async def test_an_empty_partition_has_its_ends_at_0_and_no_record_for_any_time(user: User) -> None:
    await user.create_topic("t")

    assert await found(user, offsets_at("t", EARLIEST), 11) == (0, 0, -1, 0)
    assert await found(user, offsets_at("t", LATEST), 11) == (0, 0, -1, 0)
    assert await found(user, offsets_at("t", 0), 11) == NONE_FOUND
    assert await found(user, offsets_at("t", MAX_TIMESTAMP), 11) == NONE_FOUND


@pytest.mark.parametrize("version", ends(list_offsets))
async def test_an_unknown_partition_cannot_be_asked(user: User, version: int) -> None:
    await user.create_topic("t")
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)

    assert await found(user, offsets_at("t", LATEST, 9), version) == unknown
    assert await found(user, offsets_at("missing", 0), version) == unknown


@pytest.mark.parametrize("version", ends(list_offsets))
async def test_a_partition_named_twice_is_refused_and_the_others_are_not(user: User, version: int) -> None:
    await user.create_topic("t", 2)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=EARLIEST) for index in (0, 0, 1)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])

    answers = partitions_of(await user.send(request, version))

    invalid = ErrorCode.INVALID_REQUEST
    assert [(p.partition_index, p.error_code) for p in answers] == [(0, int(invalid)), (1, 0)]


@pytest.mark.parametrize("timestamp", [EARLIEST, 0])
async def test_a_topic_named_twice_is_answered_once_and_one_without_partitions_not_at_all(
    user: User, timestamp: int
) -> None:
    await user.create_topic("t", 2)
    [first, second] = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in (0, 1)]
    topics = [
        ListOffsetsTopic(name=name, partitions=asked)
        for name, asked in (("t", [first]), ("other", []), ("t", [second]))
    ]

    answer = await user.send(ListOffsetsRequest(replica_id=-1, topics=topics), 11)

    [topic] = answer.topics
    assert (topic.name, [p.partition_index for p in topic.partitions]) == ("t", [0, 1])


@pytest.mark.parametrize("version", ends(list_offsets, since=4))
@pytest.mark.parametrize("timestamp", [LATEST, 0])
async def test_a_client_of_another_leader_epoch_is_refused(user: User, version: int, timestamp: int) -> None:
    await timed(user)

    for epoch, error in ((0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)):
        request = offsets_at("t", timestamp, leader_epoch=epoch)
        assert (await found(user, request, version))[0] == error


@pytest.mark.parametrize("version", ends(list_offsets, since=2))
async def test_an_isolation_level_that_does_not_exist_is_an_unknown_error(user: User, version: int) -> None:
    await user.create_topic("t")

    request = offsets_at("t", LATEST, isolation_level=7)

    assert await found(user, request, version) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)


async def test_committed_readers_see_nothing_from_the_first_open_transaction_on(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await user.produce("t", b"plain", timestamp=100)
    await open_transaction(home, "t", 7, b"open")
    later = home.clock.now_ms() + 1
    await user.produce("t", b"later", timestamp=later)
    committed = {"isolation_level": 1}

    assert (await found(user, offsets_at("t", LATEST), 11))[1] == 3
    assert (await found(user, offsets_at("t", LATEST, **committed), 11))[1] == 1
    assert (await found(user, offsets_at("t", later), 11))[1] == 2
    assert await found(user, offsets_at("t", later, **committed), 11) == NONE_FOUND
    as_replica = offsets_at("t", LATEST, **committed)
    as_replica.replica_id = -2
    assert (await found(user, as_replica, 11))[1] == 3

    await end_transaction(home, "t", 7, commit=True)
    assert (await found(user, offsets_at("t", LATEST, **committed), 11))[1] == 4


async def test_times_of_many_partitions_are_looked_up_each_in_its_own(user: User) -> None:
    count = 2 * SEARCHES_AT_ONCE + 3
    await user.create_topic("t", count)
    for partition in range(count):
        await user.produce("t", b"v", b"v", partition=partition, timestamp=100 + partition)
    times = {partition: 100 + partition for partition in range(count)} | {5: 999, 6: LATEST, count: 0}
    asked = [ListOffsetsPartition(partition_index=p, timestamp=time) for p, time in times.items()]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])

    answers = partitions_of(await user.send(request, 11))

    expected = {partition: (0, 0, 100 + partition) for partition in range(count)}
    expected |= {5: (0, -1, -1), 6: (0, 2, -1), count: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)}
    assert [p.partition_index for p in answers] == list(times)
    assert {p.partition_index: (p.error_code, p.offset, p.timestamp) for p in answers} == expected
