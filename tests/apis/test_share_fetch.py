"""ShareFetch (78): records for the members of a share group, each to one of them at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykafka_broker.apis.share_fetch import share_fetch
from pykafka_broker.apis.sharing.sessions import MAX_ENDED_GROUPS
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.share_fetch import LeaderIdAndEpoch
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.share.share_partition import LedSharePartition
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import UNKNOWN_ID, end_transaction, every, open_transaction, parked
from tests.apis.quotas import set_quotas
from tests.apis.share_consuming import (
    ACCEPT,
    FINAL,
    GAP,
    GROUP_RESOURCE,
    LOCK_MS,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Member,
    acknowledged,
    acquired,
    errors_of,
    partitions_of,
    shared,
    values,
)
from tests.apis.sharing import GROUP, Sharing
from tests.apis.test_denials import GROUP as GROUP_TYPE
from tests.apis.test_denials import READ, under
from tests.apis.test_denials import TOPIC as TOPIC_TYPE

WAIT_MS = 500
ABC = [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"]
NONE = ErrorCode.NONE


async def two_batches(user: User, partition: int = 0) -> None:
    """Records a to e at offsets 0 to 4, and f to h at offsets 5 to 7."""
    await user.produce("orders", b"a", b"b", b"c", b"d", b"e", partition=partition)
    await user.produce("orders", b"f", b"g", b"h", partition=partition)


async def consuming(
    user: User, home: Home, *partitions: int, member_id: str = "ann", version: int = 2
) -> Member:
    """A member of a group that begins at offset 0 of a topic with two batches in each of these partitions."""
    topic_id = await shared(user, *partitions or (0,))
    member = Member(user, topic_id, member_id, version=version)
    await member.opened(home, *partitions or (0,))
    for partition in partitions or (0,):
        await two_batches(user, partition)
    return member


# ---- records ----


@pytest.mark.parametrize("version", every(share_fetch))
async def test_records_are_acquired_and_accepted_with_the_next_fetch(
    user: User, home: Home, version: int
) -> None:
    member = await consuming(user, home, version=version)

    answer = await member.fetch()
    assert (acquired(answer), values(answer)) == ([(0, 7, 1)], ABC)
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert (answer.throttle_time_ms, answer.node_endpoints) == (0, [])

    answer = await member.fetch(said={0: [(0, 7, ACCEPT)]})
    assert (acquired(answer), acknowledged(answer)) == ([], {0: NONE})
    sharing = Sharing(user, member.topic_id)
    assert await sharing.read() == {0: (0, None, 1, 0, [(0, 7, 2, 1)])}


async def test_a_first_fetch_lists_its_partitions_and_waits_for_their_states(user: User, home: Home) -> None:
    topic_id = await shared(user)
    await two_batches(user)
    member = Member(user, topic_id)

    answer = await member.fetch(0, max_wait_ms=WAIT_MS)

    assert acquired(answer) == [(0, 7, 1)]


async def test_two_members_get_different_records(user: User, another: User, home: Home) -> None:
    ann = await consuming(user, home)
    ben = Member(another, ann.topic_id, "ben")

    first = await ann.fetch(max_records=1)
    second = await ben.fetch(0, max_records=1)

    assert (acquired(first), acquired(second)) == ([(0, 4, 1)], [(5, 7, 1)])
    assert (values(first)[0], values(second)[0]) == (b"a", b"f")


async def test_whole_batches_are_acquired_unless_the_limit_is_strict(user: User, home: Home) -> None:
    member = await consuming(user, home)

    strict = await member.fetch(max_records=2, share_acquire_mode=RECORD_LIMIT)
    soft = await member.fetch(max_records=1)

    assert (acquired(strict), values(strict)) == ([(0, 1, 1)], [b"a", b"b"])
    assert acquired(soft) == [(2, 4, 1)]
    assert values(soft) == [b"c", b"d", b"e"]


async def test_an_answer_has_the_batches_of_what_was_acquired_and_no_others(user: User, home: Home) -> None:
    member = await consuming(user, home)
    await member.fetch(max_records=1)

    answer = await member.fetch(max_records=1)

    [partition] = partitions_of(answer)
    assert [header.base_offset for _, header in iter_batches(bytes(partition.records))] == [5]


async def test_acquired_records_come_in_batches_of_about_the_size_that_is_asked_for(
    user: User, home: Home
) -> None:
    member = await consuming(user, home)
    assert acquired(await member.fetch(batch_size=2)) == [(0, 4, 1), (5, 7, 1)]


async def test_released_records_come_again_and_are_counted(user: User, another: User, home: Home) -> None:
    ann = await consuming(user, home)
    ben = Member(another, ann.topic_id, "ben")
    await ann.fetch()
    await ann.fetch(said={0: [(0, 7, ACCEPT, RELEASE, REJECT, GAP, ACCEPT, ACCEPT, ACCEPT, ACCEPT)]})

    answer = await ben.fetch(0)

    assert (acquired(answer), values(answer)) == ([(1, 1, 2)], [b"b"])


async def test_records_whose_lock_has_ended_wake_a_member_that_waits(
    user: User, another: User, home: Home
) -> None:
    ann = await consuming(user, home)
    await ann.fetch()
    ben = Member(another, ann.topic_id, "ben")
    waiting = await parked(home, ben.fetch(0, max_wait_ms=2 * LOCK_MS))

    await home.pass_time(LOCK_MS)

    assert acquired(await waiting) == [(0, 7, 2)]


async def test_a_group_reads_aborted_records_unless_it_reads_committed(user: User, home: Home) -> None:
    topic_id = await shared(user)
    member = Member(user, topic_id)
    assert await user.try_to_alter(GROUP_RESOURCE, GROUP, share_isolation_level="read_committed") is NONE
    await member.opened(home, 0)
    await user.produce("orders", b"a", b"b")
    await open_transaction(home, "orders", 7, b"c", b"d")
    await user.produce("orders", b"e")
    assert values(await member.fetch()) == [b"a", b"b"]
    assert acquired(await member.fetch()) == []

    await end_transaction(home, "orders", 7, commit=False)

    answer = await member.fetch()
    assert (acquired(answer), values(answer)) == ([(4, 5, 1)], [b"e"])
    other = Member(user, topic_id, "ben", group="others")
    await Sharing(user, topic_id).initialize(group="others")
    await other.opened(home, 0)
    assert values(await other.fetch()) == [b"a", b"b", b"c", b"d", b"e"]


async def test_a_group_has_no_more_records_in_flight_than_it_may(user: User, home: Home) -> None:
    topic_id = await shared(user)
    assert await user.try_to_alter(GROUP_RESOURCE, GROUP, share_partition_max_record_locks="100") is NONE
    member = Member(user, topic_id)
    await member.opened(home, 0)
    for _ in range(20):
        await user.produce("orders", *[b"x"] * 10)

    assert acquired(await member.fetch(max_records=1_000)) == [(0, 99, 1)]
    assert acquired(await member.fetch()) == []
    await member.fetch(said={0: [(0, 49, ACCEPT)]})
    assert acquired(await member.fetch()) == [(100, 149, 1)]


async def test_more_than_one_piece_of_the_log_is_read_where_that_is_needed(user: User, home: Home) -> None:
    topic_id = await shared(user)
    member = Member(user, topic_id)
    await member.opened(home, 0)
    for _ in range(30):
        await user.produce("orders", *[b"x" * 10_000])

    answer = await member.fetch(max_records=20, share_acquire_mode=RECORD_LIMIT)
    assert (acquired(answer), len(values(answer))) == ([(0, 19, 1)], 20)
    assert acquired(await member.fetch(max_bytes=55_000)) == [(20, 24, 1)]
    assert acquired(await member.fetch(max_bytes=1)) == [(25, 25, 1)]


async def test_records_that_have_left_the_log_are_passed(user: User, home: Home) -> None:
    member = await consuming(user, home)
    partition = home.broker.node.broker.replicas.led("orders", 0)
    assert partition is not None
    partition.log.trimmer.delete_records(5)

    assert errors_of(await member.fetch()) == {}
    assert acquired(await member.fetch()) == [(5, 7, 1)]


async def test_after_a_restart_a_group_goes_on_where_it_was(home: Home) -> None:
    async with home.running() as user:
        member = await consuming(user, home)
        await member.fetch()
        await member.fetch(said={0: [(0, 2, ACCEPT), (4, 5, RELEASE)]})
        after = home.killed()
    async with after.running() as user:
        again = Member(user, member.topic_id, "ben")
        answer = await again.fetch(0, max_wait_ms=WAIT_MS)
        # Released ones count their delivery; what was neither accepted nor given back is as good as new.
        assert acquired(answer) == [(3, 3, 1), (4, 5, 2), (6, 7, 1)]


async def test_where_a_new_group_begins_is_for_it_to_say(user: User, home: Home) -> None:
    topic_id = await shared(user, start_offset=-1)
    await two_batches(user)
    member = Member(user, topic_id)
    await member.opened(home, 0)
    await user.produce("orders", b"new")
    assert values(await member.fetch()) == [b"new"]

    await Sharing(user, topic_id).initialize(group="others", start_offset=-1)
    assert await user.try_to_alter(GROUP_RESOURCE, "others", share_auto_offset_reset="earliest") is NONE
    other = Member(user, topic_id, "ben", group="others")
    assert values(await other.fetch(0, max_wait_ms=WAIT_MS)) == [*ABC, b"new"]


# ---- waiting ----


async def test_a_fetch_of_nothing_waits_until_something_is_appended(
    user: User, another: User, home: Home
) -> None:
    topic_id = await shared(user)
    member = Member(another, topic_id)
    await member.opened(home, 0)
    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS))

    await two_batches(user)

    assert acquired(await waiting) == [(0, 4, 1)]
    counts = home.broker.node.broker.replicas.counts.total()
    assert (counts.share_fetch_requests, counts.failed_share_fetch_requests) == (2, 0)


async def test_a_fetch_that_has_waited_long_enough_is_answered_with_nothing(user: User, home: Home) -> None:
    topic_id = await shared(user)
    member = Member(user, topic_id)
    await member.opened(home, 0)
    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS))
    delayed = home.broker.node.broker.purgatory.share_fetches

    await home.pass_time(WAIT_MS - 1)
    assert not waiting.done()
    assert delayed.operations == 1
    await home.pass_time(1)

    assert (await waiting).responses == []
    assert (delayed.operations, delayed.places) == (0, 0)


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants(user: User, another: User, home: Home) -> None:
    topic_id = await shared(user)
    member = Member(another, topic_id)
    await member.opened(home, 0)
    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS, min_bytes=150))

    await user.produce("orders", b"a" * 10)
    await settle()
    assert not waiting.done()
    await user.produce("orders", b"b" * 10)

    assert acquired(await waiting) == [(0, 1, 1)]


async def test_a_log_that_moves_for_followers_costs_a_fetch_a_look_at_its_own_partition(
    user: User, another: User, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked at all partitions, and a request that writes to all of them made each move."""
    topic_id = await shared(user, 0, 1)
    member = Member(another, topic_id)
    await member.opened(home, 0, 1)
    looks, earliest_begin = [], LedSharePartition.earliest_begin

    def noted(partition: LedSharePartition) -> int | None:
        looks.append(partition.key.partition)
        return earliest_begin(partition)

    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS))
    monkeypatch.setattr(LedSharePartition, "earliest_begin", noted)

    for partition in (0, 1):
        replica = home.broker.node.broker.replicas.led("orders", partition)
        assert replica is not None
        replica.log.state.wake_waiting()

    assert (looks, waiting.done()) == ([0, 1], False)
    await two_batches(user, 1)
    assert [partition.partition_index for partition in partitions_of(await waiting)] == [1]


async def test_of_many_that_wait_each_gets_its_own_record(user: User, home: Home) -> None:
    topic_id = await shared(user)
    async with asyncio.TaskGroup() as connecting:
        connected = [
            connecting.create_task(User.connect(home.broker.bootstrap_servers, f"member-{index}"))
            for index in range(10)
        ]
    members = [Member(task.result(), topic_id, f"m{index}") for index, task in enumerate(connected)]
    for member in members:
        await member.opened(home, 0)
    waiting = [await parked(home, member.fetch(max_wait_ms=WAIT_MS)) for member in members]

    for index in range(10):
        await user.produce("orders", b"%d" % index)

    answers = await asyncio.gather(*waiting)
    assert sorted(offset for answer in answers for offset, _, _ in acquired(answer)) == list(range(10))
    for member in members:
        await member.user.close()


async def test_deleting_the_topic_ends_the_wait(user: User, another: User, home: Home) -> None:
    topic_id = await shared(user)
    member = Member(another, topic_id)
    await member.opened(home, 0)
    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS))

    await user.delete_topic("orders")

    assert errors_of(await waiting) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert errors_of(await member.fetch()) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_share_partition_without_state_is_an_error_when_the_wait_is_over(
    user: User, home: Home
) -> None:
    topic_id = await shared(user)
    member = Member(user, topic_id)
    waiting = await parked(home, member.fetch(1, max_wait_ms=WAIT_MS))

    await home.pass_time(WAIT_MS)

    assert errors_of(await waiting) == {1: ErrorCode.UNKNOWN_SERVER_ERROR}


# ---- several partitions ----


async def test_partitions_share_the_limits(user: User, home: Home) -> None:
    member = await consuming(user, home, 0, 1)

    answer = await member.fetch(max_records=5)
    assert (acquired(answer, 0), acquired(answer, 1)) == ([], [(0, 4, 1)])
    answer = await member.fetch(max_records=5)
    assert (acquired(answer, 0), acquired(answer, 1)) == ([(0, 4, 1)], [])


async def test_partitions_that_cannot_be_served_are_told_beside_the_others(user: User, home: Home) -> None:
    member = await consuming(user, home)
    refused = {
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0: ErrorCode.UNKNOWN_TOPIC_ID,
    }

    assert errors_of(await member.fetch(7)) == {0: NONE, 7: refused[7]}
    stranger = Member(user, member.topic_id, "ben")
    assert errors_of(await stranger.fetch(0, topic_id=UNKNOWN_ID, max_wait_ms=WAIT_MS)) == {0: refused[0]}
    assert errors_of(await stranger.fetch()) == {0: refused[0]}


# ---- acknowledgements that come with a fetch ----


async def test_an_acknowledgement_has_its_own_error_in_each_partition(user: User, home: Home) -> None:
    member = await consuming(user, home, 0, 1)
    await member.fetch()

    answer = await member.fetch(said={0: [(0, 7, ACCEPT)], 1: [(0, 8, ACCEPT)], 2: [(0, 0, ACCEPT)]})

    assert acknowledged(answer) == {
        0: NONE,
        1: ErrorCode.INVALID_REQUEST,
        2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [_, second, third] = sorted(partitions_of(answer), key=lambda each: each.partition_index)
    assert second.acknowledge_error_message == (
        "Batch record not found. The last offset in request is past acquired records."
    )
    assert (third.acknowledge_error_message, third.error_code) == (None, third.acknowledge_error_code)
    assert third.current_leader == LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


async def test_nothing_is_acknowledged_where_nobody_has_fetched(user: User, home: Home) -> None:
    member = await consuming(user, home)
    answer = await member.fetch(said={1: [(0, 0, ACCEPT)]})
    assert acknowledged(answer)[1] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_renewing_locks_fetches_nothing(user: User, home: Home) -> None:
    member = await consuming(user, home)
    await member.fetch(max_records=1)
    await home.pass_time(LOCK_MS - 1)
    limits = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}

    answer = await member.fetch(said={0: [(0, 4, RENEW)]}, is_renew_ack=True, **limits)
    assert (acknowledged(answer), acquired(answer)) == ({0: NONE}, [])
    for limit in limits:
        wrong = limits | {limit: 1}
        refused = await member.try_to_fetch(said={0: [(0, 4, RENEW)]}, is_renew_ack=True, **wrong)
        assert refused is ErrorCode.INVALID_REQUEST
    await home.pass_time(LOCK_MS - 1)
    assert acquired(await member.fetch(max_records=1)) == [(5, 7, 1)]
    await home.pass_time(1)
    assert acquired(await member.fetch(max_records=1)) == [(0, 4, 2)]


# ---- sessions ----


async def test_the_last_fetch_acknowledges_and_gives_the_rest_back(
    user: User, another: User, home: Home
) -> None:
    ann = await consuming(user, home)
    ben = Member(another, ann.topic_id, "ben")
    await ben.fetch(0, max_records=0)
    await ann.fetch()

    answer = await ann.fetch(epoch=FINAL, said={0: [(0, 4, ACCEPT)]})

    assert (acknowledged(answer), acquired(answer)) == ({0: NONE}, [])
    await settle()
    assert acquired(await ben.fetch(max_wait_ms=WAIT_MS)) == [(5, 7, 2)]
    assert await ann.try_to_fetch(epoch=FINAL) is ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_a_lost_connection_gives_the_records_back(user: User, another: User, home: Home) -> None:
    ann = await consuming(another, home)
    ben = Member(user, ann.topic_id, "ben")
    await ben.fetch(0, max_records=0)
    await ann.fetch()
    await ann.user.close()

    assert acquired(await ben.fetch(max_wait_ms=WAIT_MS)) == [(0, 7, 2)]


async def test_a_group_whose_last_member_has_gone_is_loaded_anew(
    user: User, another: User, home: Home
) -> None:
    ann = await consuming(another, home)
    await ann.fetch()
    shares: Any = home.broker.node.broker.ports.share_partitions
    assert len(shares) == 1

    await ann.user.close()
    await until(lambda: len(shares) == 0)

    ben = Member(user, ann.topic_id, "ben")
    assert acquired(await ben.fetch(0, max_wait_ms=WAIT_MS)) == [(0, 7, 2)]


async def test_a_group_that_many_others_of_its_connection_have_pushed_out_is_dropped(
    user: User, home: Home
) -> None:
    ann = await consuming(user, home)
    await ann.fetch(epoch=FINAL)
    shares: Any = home.broker.node.broker.ports.share_partitions
    for number in range(MAX_ENDED_GROUPS):
        assert len(shares) == 1
        other = Member(user, ann.topic_id, group=f"group {number}")
        await other.fetch(7)
        await other.fetch(7, epoch=0)
    assert len(shares) == 0


async def test_no_more_sessions_are_begun_than_may_be_and_who_is_refused_has_to_wait(home: Home) -> None:
    home.overrides |= {"group.share.max.share.sessions": "1", "group.share.max.size": "1"}
    async with home.running() as user:
        topic_id = await shared(user)
        await Member(user, topic_id).opened(home, 0)
        late = Member(user, topic_id, "ben")

        waiting = await parked(home, late.fetch(0, max_wait_ms=WAIT_MS))
        await home.pass_time(WAIT_MS)

        assert (await waiting).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def test_a_partition_that_is_forgotten_is_fetched_no_more(user: User, home: Home) -> None:
    member = await consuming(user, home, 0, 1)

    answer = await member.fetch(forget=[0])

    assert (acquired(answer, 0), acquired(answer, 1)) == ([], [(0, 7, 1)])


# ---- whom it serves ----


@pytest.mark.parametrize("version", every(share_fetch))
async def test_who_asks_has_to_say_who_it_is(user: User, version: int) -> None:
    topic_id = await shared(user)
    for member_id in ("", "m" * 37, "\U0001f600" * 19):
        member = Member(user, topic_id, member_id, version=version)
        assert await member.try_to_fetch(0) is ErrorCode.INVALID_REQUEST
    nobody = Member(user, topic_id, group=None, version=version)
    assert await nobody.try_to_fetch(0) is ErrorCode.INVALID_REQUEST
    assert await Member(user, topic_id, "m" * 36, version=version).try_to_fetch(0) is NONE


async def test_an_acquire_mode_that_nobody_knows_is_refused_after_what_is_acknowledged(
    user: User, home: Home
) -> None:
    member = await consuming(user, home)
    await member.fetch()

    refused = await member.try_to_fetch(said={0: [(0, 7, ACCEPT)]}, share_acquire_mode=9)

    assert refused is ErrorCode.UNKNOWN_SERVER_ERROR
    await settle()
    assert await Sharing(user, member.topic_id).read() == {0: (0, None, 1, 0, [(0, 7, 2, 1)])}


async def test_a_negative_limit_of_bytes_is_an_error_of_each_partition(user: User, home: Home) -> None:
    member = await consuming(user, home)
    assert errors_of(await member.fetch(max_bytes=-1)) == {0: ErrorCode.UNKNOWN_SERVER_ERROR}
    assert errors_of(await member.fetch(max_bytes=0)) == {}
    assert acquired(await member.fetch(max_records=-1)) == []


async def test_a_member_may_have_to_be_allowed_to_read(user: User, home: Home) -> None:
    member = await consuming(user, home)
    stranger, authorizer = await under(home, (READ, GROUP_TYPE, GROUP))
    of_stranger = Member(stranger, member.topic_id, "ben")

    assert await of_stranger.try_to_fetch(0) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert authorizer.attempts == [(READ, GROUP_TYPE, GROUP)]
    # Whoever may not read the group is not told whether its own name is one.
    of_stranger.member_id = ""
    assert await of_stranger.try_to_fetch(0) is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_topic_that_one_may_not_read_is_neither_fetched_nor_acknowledged(
    user: User, home: Home
) -> None:
    member = await consuming(user, home)
    stranger, authorizer = await under(home, (READ, TOPIC_TYPE, "orders"))
    of_stranger = Member(stranger, member.topic_id, "ben")
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    assert errors_of(await of_stranger.fetch(0)) == {0: denied}
    answer = await of_stranger.fetch(said={0: [(0, 0, ACCEPT)]})
    assert (errors_of(answer), acknowledged(answer)) == ({0: denied}, {0: denied})
    assert authorizer.attempts[0] == (READ, TOPIC_TYPE, "orders")


async def test_a_consumer_over_its_quota_gets_no_records_until_it_has_waited(home: Home) -> None:
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers, "app") as app:
        topic_id = await shared(user)
        await set_quotas(user, {"client_id": "app"}, consumer_byte_rate=1_000.0)
        member = Member(app, topic_id)
        await member.opened(home, 0)
        for _ in range(3):
            await user.produce("orders", b"x" * 6_000)

        first = await member.fetch(max_records=1)
        second = await member.fetch(max_records=1)
        assert (acquired(first), first.throttle_time_ms) == ([(0, 0, 1)], 0)
        # What is sent counts; what is too much has to be waited for.
        assert acquired(second) == [(1, 1, 1)]
        assert second.throttle_time_ms > 0
        waiting = asyncio.ensure_future(member.fetch(max_records=1))
        await home.pass_time(second.throttle_time_ms)
        third = await waiting
        assert acquired(third) in ([(2, 2, 1)], [])


async def test_the_leader_that_has_lost_a_partition_names_the_next_one(
    user: User, another: User, home: Home
) -> None:
    topic_id = await shared(user)
    member = Member(another, topic_id)
    await member.opened(home, 0)
    waiting = await parked(home, member.fetch(max_wait_ms=WAIT_MS))

    lead_elsewhere(home, "orders")

    answer = await waiting
    assert errors_of(answer) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert errors_of(await member.fetch()) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def lead_elsewhere(home: Home, name: str) -> None:
    """Let broker 7 lead partition 0 of a topic, as far as the replicas here know."""
    node = home.broker.node
    topic = node.image.topics[name]
    partition = topic.partitions[0]
    here = node.foundation.node_id
    moved = partition._replace(
        replicas=(here, 7), isr=(here, 7), leader=7, leader_epoch=partition.leader_epoch + 1, directories=()
    )
    topics = {**node.image.topics, name: topic._replace(partitions={**topic.partitions, 0: moved})}
    node.broker.replicas.apply(node.image._replace(topics=topics))
