"""Fetch (1): batches at once, or as soon as there are enough of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykafka_broker.apis.fetch import fetch
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import AbortedTransaction, PartitionData, ReplicaState
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import (
    UNKNOWN_ID,
    Topic,
    batch,
    end_transaction,
    ends,
    every,
    fetching_of,
    open_transaction,
    parked,
    partitions_of,
    producing_to,
    wanting,
)

WAIT_MS = 500


def as_named(version: int, name: str, topic_id: bytes) -> Topic:
    return topic_id if version >= 13 else name


def base_offsets(records: Any) -> list[int]:
    return [header.base_offset for _, header in iter_batches(bytes(records or b""))]


async def three_batches(user: User, name: str = "t", partitions: int = 1) -> bytes:
    """A topic with batches at offsets 0, 2 and 4, 80 bytes each, in every partition; its id."""
    topic_id = await user.create_topic(name, partitions)
    for partition in range(partitions):
        for value in (b"a", b"b", b"c"):
            records = batch(value, value)
            [answer] = partitions_of(await user.send(producing_to(name, records, partition), 12))
            assert answer.error_code == 0
    return topic_id


BATCH_BYTES = len(batch(b"a", b"a"))


async def one(user: User, request: Any, version: int = 12) -> PartitionData:
    [answer] = partitions_of(await user.send(request, version))
    assert isinstance(answer, PartitionData)
    return answer


# --- what is read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", every(fetch))
async def test_whole_batches_are_served_from_the_one_that_holds_the_offset(user: User, version: int) -> None:
    topic = as_named(version, "t", await three_batches(user))

    for offset, batches in ((0, [0, 2, 4]), (2, [2, 4]), (3, [2, 4]), (5, [4]), (6, [])):
        answer = await one(user, fetching_of(wanting(topic, offset)), version)
        assert (answer.error_code, base_offsets(answer.records)) == (0, batches)
        assert (answer.high_watermark, answer.last_stable_offset) == (6, 6)
        assert answer.log_start_offset == (0 if version >= 5 else -1)


async def test_batches_carry_their_leader_epoch(user: User) -> None:
    await three_batches(user)

    answer = await one(user, fetching_of(wanting("t")))

    assert answer.records is not None
    assert {header.partition_leader_epoch for _, header in iter_batches(answer.records)} == {0}


@pytest.mark.parametrize("offset", [-1, 7])
@pytest.mark.parametrize("version", ends(fetch))
async def test_an_offset_that_does_not_exist_is_out_of_range(user: User, version: int, offset: int) -> None:
    topic = as_named(version, "t", await three_batches(user))

    answer = await one(user, fetching_of(wanting(topic, offset)), version)

    assert answer == PartitionData(
        partition_index=0,
        error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=-1,
        aborted_transactions=None,
        records=memoryview(b""),
    )


@pytest.mark.parametrize("version", ends(fetch))
async def test_unknown_topics_are_answered_after_known_ones(user: User, version: int) -> None:
    known = as_named(version, "t", await three_batches(user))
    unknown = UNKNOWN_ID if version >= 13 else "unknown"

    answer = await user.send(fetching_of(wanting(unknown), wanting(known, 0, 9), wanting(known)), version)

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    errors = [(p.partition_index, p.error_code) for p in partitions_of(answer)]
    by_id = [(0, 0), (0, ErrorCode.UNKNOWN_TOPIC_ID), (9, missing)]
    assert errors == (by_id if version >= 13 else [(0, 0), (0, missing), (9, missing)])
    assert [p.aborted_transactions for p in partitions_of(answer)] == [None, [], []]


async def test_a_negative_limit_is_an_error_only_where_there_is_something_to_read(user: User) -> None:
    await three_batches(user)

    errors = [
        (await one(user, fetching_of(wanting("t", offset, max_bytes=-1)))).error_code for offset in (7, 6, 5)
    ]

    assert errors == [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]
    request = fetching_of(wanting("t"), max_bytes=-1)
    assert (await one(user, request)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# --- limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, BATCH_BYTES - 1])
async def test_the_first_batch_comes_whole_however_small_the_limits(user: User, limit: int) -> None:
    await three_batches(user)

    for request in (
        fetching_of(wanting("t", max_bytes=limit)),
        fetching_of(wanting("t"), max_bytes=limit),
    ):
        answer = await one(user, request)
        assert answer.records is not None
        assert len(answer.records) == BATCH_BYTES


async def test_only_the_first_partition_with_records_may_go_beyond_the_limits(user: User) -> None:
    await three_batches(user, partitions=3)

    answer = await user.send(
        fetching_of(wanting("t", 6, 0), wanting("t", 0, 1), wanting("t", 0, 2), max_bytes=1), 12
    )

    assert [base_offsets(p.records) for p in partitions_of(answer)] == [[], [0], []]


async def test_partitions_are_served_in_the_order_of_the_request_within_their_limits(user: User) -> None:
    await three_batches(user, partitions=2)

    answer = await user.send(
        fetching_of(
            wanting("t", 0, 1, max_bytes=2 * BATCH_BYTES), wanting("t", 0, 0), max_bytes=3 * BATCH_BYTES
        ),
        12,
    )

    assert [(p.partition_index, base_offsets(p.records)) for p in partitions_of(answer)] == [
        (1, [0, 2]),
        (0, [0]),
    ]


async def test_the_brokers_own_limit_holds_too(home: Home) -> None:
    home.overrides["fetch.max.bytes"] = "1024"
    async with home.running() as user:
        await user.create_topic("t")
        for _ in range(20):
            await user.produce("t", b"x" * 100)

        answer = await one(user, fetching_of(wanting("t")))

        assert answer.records is not None
        assert 0 < len(answer.records) <= 1024


@pytest.mark.parametrize("request_of_none", [wanting("t", max_bytes=-1), wanting("t")])
async def test_limits_below_0_are_a_server_error(user: User, request_of_none: Any) -> None:
    await three_batches(user)
    whole = -1 if request_of_none.partitions[0].partition_max_bytes > 0 else 1000

    answer = await one(user, fetching_of(request_of_none, max_bytes=whole))

    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# --- waiting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ends(fetch))
async def test_a_fetch_of_nothing_waits_until_something_is_appended(
    home: Home, user: User, another: User, version: int
) -> None:
    topic = as_named(version, "t", await user.create_topic("t"))
    waiting = await parked(home, one(user, fetching_of(wanting(topic), max_wait_ms=WAIT_MS), version))

    await another.produce("t", b"news")

    assert base_offsets((await waiting).records) == [0]


async def test_a_fetch_of_nothing_ends_when_its_time_is_up(home: Home, user: User) -> None:
    await user.create_topic("t")
    waiting = await parked(home, one(user, fetching_of(wanting("t"), max_wait_ms=WAIT_MS)))

    await home.clock.pass_time(WAIT_MS - 1)
    assert not waiting.done()
    await home.clock.pass_time(1)

    answer = await waiting
    assert (answer.error_code, bytes(answer.records or b"")) == (0, b"")


async def test_too_few_bytes_are_waited_on(home: Home, user: User, another: User) -> None:
    await three_batches(user)
    enough = 4 * BATCH_BYTES
    waiting = await parked(home, one(user, fetching_of(wanting("t"), max_wait_ms=WAIT_MS, min_bytes=enough)))

    await another.send(producing_to("t", batch(b"d", b"d")), 12)

    assert base_offsets((await waiting).records) == [0, 2, 4, 6]


async def test_bytes_beyond_a_partitions_limit_do_not_count(home: Home, user: User) -> None:
    await three_batches(user)
    request = fetching_of(wanting("t", max_bytes=BATCH_BYTES), max_wait_ms=WAIT_MS, min_bytes=BATCH_BYTES + 1)
    waiting = await parked(home, one(user, request))

    await home.clock.pass_time(WAIT_MS)

    assert base_offsets((await waiting).records) == [0]


async def test_more_min_bytes_than_the_answer_may_hold_are_reached_when_it_is_full(user: User) -> None:
    await three_batches(user)
    # The limit lies inside the second batch: what is answered falls short of it, and still must not wait.
    limit = BATCH_BYTES + 10

    answer = await one(user, fetching_of(wanting("t"), max_wait_ms=WAIT_MS, min_bytes=1000, max_bytes=limit))

    assert base_offsets(answer.records) == [0]


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param([], id="nothing is wanted"),
        pytest.param([wanting("unknown")], id="nothing is known"),
        pytest.param([wanting("empty"), wanting("t", 99)], id="out of range"),
        pytest.param([wanting("empty", leader_epoch=9)], id="unknown leader epoch"),
        pytest.param([wanting("t")], id="enough bytes"),
    ],
)
async def test_there_is_nothing_to_wait_for(user: User, wanted: list[Any]) -> None:
    await three_batches(user)
    await user.create_topic("empty")

    await user.send(fetching_of(*wanted, max_wait_ms=WAIT_MS), 12)  # the clock stands still


async def test_an_unknown_partition_does_not_end_the_wait_of_the_good_one_beside_it(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    request = fetching_of(wanting("t"), wanting("t", 0, 9), max_wait_ms=WAIT_MS)
    waiting = await parked(home, user.send(request, 12))

    await home.clock.pass_time(WAIT_MS)

    errors = [p.error_code for p in partitions_of(await waiting)]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_deleting_the_topic_ends_the_wait(home: Home, user: User, another: User) -> None:
    await user.create_topic("t")
    waiting = await parked(home, one(user, fetching_of(wanting("t"), max_wait_ms=WAIT_MS)))

    await another.delete_topic("t")

    answer = await waiting
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.aborted_transactions is None  # it was known when the fetch came


async def test_a_reader_that_leaves_is_not_waited_for(home: Home, user: User, another: User) -> None:
    await user.create_topic("t")
    before = home.clock.pending_timers
    waiting = await parked(home, another.send(fetching_of(wanting("t"), max_wait_ms=WAIT_MS), 12))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    await another.close()

    await until(lambda: home.clock.pending_timers <= before)
    assert await user.produce("t", b"v") == 0


# --- epochs, isolation, replicas ----------------------------------------------------------------------


@pytest.mark.parametrize("version", ends(fetch, since=9))
async def test_a_client_that_knows_another_leader_epoch_is_told(user: User, version: int) -> None:
    topic = as_named(version, "t", await three_batches(user))

    for leader_epoch, error in ((-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        answer = await one(user, fetching_of(wanting(topic, leader_epoch=leader_epoch)), version)
        assert answer.error_code == error


async def test_a_client_of_an_older_leader_epoch_is_fenced_and_told_the_leader(home: Home) -> None:
    async with home.running() as user:
        topic_id = await three_batches(user)
    async with home.running() as user:  # a new start is a new leader epoch
        [topic] = (await user.metadata("t")).topics
        epoch = topic.partitions[0].leader_epoch
        assert epoch > 0

        answer = await user.send(fetching_of(wanting(topic_id, leader_epoch=0)), 16)

        [partition] = partitions_of(answer)
        assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, epoch)
        assert [node.node_id for node in answer.node_endpoints] == [1]


@pytest.mark.parametrize("version", ends(fetch, since=12))
async def test_a_reader_whose_log_has_diverged_learns_where(home: Home, version: int) -> None:
    async with home.running() as user:
        topic = as_named(version, "t", await three_batches(user))
    async with home.running() as user:
        await user.produce("t", b"of the next epoch")
        request = fetching_of(wanting(topic, 7, last_fetched_epoch=0), max_wait_ms=WAIT_MS, isolation_level=1)

        answer = await one(user, request, version)

        assert answer.diverging_epoch is not None
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 6)
        assert (not answer.records, answer.aborted_transactions) == (True, None)


async def test_an_epoch_the_leader_never_had_is_out_of_range(user: User) -> None:
    await three_batches(user)

    answer = await one(user, fetching_of(wanting("t", last_fetched_epoch=5)))

    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_an_epoch_that_has_begun_without_a_record_is_known(home: Home, user: User) -> None:
    await user.create_topic("t")
    request = fetching_of(wanting("t", last_fetched_epoch=0), max_wait_ms=WAIT_MS)
    waiting = await parked(home, one(user, request))

    await home.clock.pass_time(WAIT_MS)

    assert ((await waiting).error_code, (await waiting).diverging_epoch) == (0, None)


@pytest.mark.parametrize("version", ends(fetch))
async def test_committed_records_are_read_with_a_list_of_aborted_transactions(
    user: User, version: int
) -> None:
    topic = as_named(version, "t", await three_batches(user))

    plain = await one(user, fetching_of(wanting(topic), isolation_level=0), version)
    committed = await one(user, fetching_of(wanting(topic), isolation_level=1), version)

    assert (plain.aborted_transactions, committed.aborted_transactions) == (None, [])
    assert plain.records == committed.records


async def test_nothing_is_said_of_transactions_where_the_first_batch_does_not_fit(user: User) -> None:
    topics = [await three_batches(user), await three_batches(user, "u")]

    answer = await user.send(
        fetching_of(*(wanting(topic, max_bytes=1) for topic in topics), isolation_level=1), 13
    )

    read, left_out = partitions_of(answer)
    assert (bool(read.records), read.aborted_transactions) == (True, [])
    assert (bool(left_out.records), left_out.aborted_transactions) == (False, None)


@pytest.mark.parametrize("version", ends(fetch))
async def test_committed_readers_stop_at_an_open_transaction_and_learn_of_aborted_ones(
    home: Home, user: User, version: int
) -> None:
    topic = as_named(version, "t", await user.create_topic("t"))
    await open_transaction(home, "t", 7, b"aborted")
    await end_transaction(home, "t", 7, commit=False)
    await open_transaction(home, "t", 8, b"open")
    await user.produce("t", b"plain", timestamp=home.clock.now_ms())

    plain = await one(user, fetching_of(wanting(topic), isolation_level=0), version)
    committed = await one(user, fetching_of(wanting(topic), isolation_level=1), version)

    assert (plain.high_watermark, plain.last_stable_offset) == (4, 2)
    assert (base_offsets(plain.records), plain.aborted_transactions) == ([0, 1, 2, 3], None)
    assert base_offsets(committed.records) == [0, 1]
    assert committed.aborted_transactions == [AbortedTransaction(producer_id=7, first_offset=0)]


async def test_the_end_of_a_transaction_wakes_the_committed_readers_that_wait_for_it(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await open_transaction(home, "t", 7, b"v")
    request = fetching_of(wanting("t"), max_wait_ms=WAIT_MS, isolation_level=1)
    waiting = await parked(home, one(user, request))

    await end_transaction(home, "t", 7, commit=True)

    assert base_offsets((await waiting).records) == [0, 1]


@pytest.mark.parametrize("version", ends(fetch))
async def test_an_unknown_isolation_level_is_an_error_from_version_7_on(user: User, version: int) -> None:
    topic = as_named(version, "t", await three_batches(user))

    answer = await user.send(fetching_of(wanting(topic), isolation_level=2), version)

    assert answer.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if version >= 7 else 0)
    errors = [partition.error_code for partition in partitions_of(answer)]
    assert errors == ([] if version >= 13 else [ErrorCode.UNKNOWN_SERVER_ERROR])


@pytest.mark.parametrize("version", ends(fetch))
async def test_a_partition_with_one_replica_has_no_followers(user: User, version: int) -> None:
    topic = as_named(version, "t", await three_batches(user))
    request = fetching_of(wanting(topic))
    if version < 15:
        request.replica_id = 2
    else:
        request.replica_state = ReplicaState(replica_id=2)

    answer = await user.send(request, version)

    assert [partition.error_code for partition in partitions_of(answer)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert answer.node_endpoints == []  # followers know where brokers are


@pytest.mark.parametrize("version", ends(fetch))
async def test_a_followers_fetch_commits_what_a_producer_with_acks_all_waits_for(
    home: Home, user: User, another: User, version: int
) -> None:
    topic_id = await three_batches(user)
    topic = as_named(version, "t", topic_id)
    node = home.broker.node
    old = node.image.topics["t"]
    leader = node.foundation.node_id
    both = (leader, leader + 1)
    followed = old.partitions[0]._replace(replicas=both, isr=both, partition_epoch=9)
    node.broker.replicas.apply(
        node.image._replace(topics={**node.image.topics, "t": old._replace(partitions={0: followed})})
    )
    partition = node.broker.replicas.led("t", 0)
    assert partition is not None
    state = partition.log.state

    by_leader = await user.send(producing_to("t", batch(b"d"), acks=1), 12)
    assert [answer.error_code for answer in partitions_of(by_leader)] == [0]
    waiting = asyncio.ensure_future(user.send(producing_to("t", batch(b"e")), 12))
    await until(lambda: state.log_end_offset == 8)
    assert state.high_watermark == 6

    for offset, high_watermark in ((7, 7), (8, 8)):
        assert not waiting.done()
        request = fetching_of(wanting(topic, offset), max_wait_ms=0)
        if version < 15:
            request.replica_id = leader + 1
        else:
            request.replica_state = ReplicaState(replica_id=leader + 1)
        assert (await one(another, request, version)).error_code == 0
        assert state.high_watermark == high_watermark

    assert [answer.error_code for answer in partitions_of(await waiting)] == [0]
