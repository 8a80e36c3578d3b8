"""ShareAcknowledge (79): what became of records, without a fetch."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.share_acknowledge import share_acknowledge
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import UNKNOWN_ID, every
from tests.apis.share_consuming import (
    ACCEPT,
    FINAL,
    GROUP_RESOURCE,
    LOCK_MS,
    RELEASE,
    RENEW,
    Member,
    Said,
    acquired,
    errors_of,
    partitions_of,
    shared,
)
from tests.apis.sharing import GROUP, Sharing

NONE = ErrorCode.NONE


async def having(user: User, home: Home, version: int = 2) -> Member:
    """A member that has acquired records 0 to 9, in one batch."""
    member = Member(user, await shared(user), version=version)
    await member.opened(home, 0)
    await user.produce("orders", *[b"x"] * 10)
    assert acquired(await member.fetch()) == [(0, 9, 1)]
    return member


@pytest.mark.parametrize("version", every(share_acknowledge))
async def test_records_are_acknowledged_one_by_one_or_many_at_once(
    user: User, home: Home, version: int
) -> None:
    member = await having(user, home, version)

    answer = await member.acknowledge((0, 2, ACCEPT), (3, 5, ACCEPT, RELEASE, ACCEPT), (6, 9, ACCEPT))

    assert errors_of(answer) == {0: NONE}
    assert answer.acquisition_lock_timeout_ms == (LOCK_MS if version >= 2 else 0)
    assert acquired(await member.fetch()) == [(4, 4, 2)]


MALFORMED: dict[str, tuple[Said, ...]] = {
    "ends before it begins": ((3, 2, ACCEPT),),
    "begins before the one before ends": ((0, 4, ACCEPT), (3, 9, ACCEPT)),
    "has no type": ((0, 4),),
    "has a type for some of its offsets": ((0, 4, ACCEPT, ACCEPT),),
    "has a type that nobody knows": ((0, 0, 5),),
    "has a negative type": ((0, 0, -1),),
    "renews though the request does not": ((0, 9, RENEW),),
    "begins before the log": ((-5, 0, ACCEPT),),
}


@pytest.mark.parametrize("said", MALFORMED.values(), ids=MALFORMED)
async def test_a_batch_that_makes_no_sense_is_refused_and_nothing_of_its_partition_is_taken(
    user: User, home: Home, said: tuple[Said, ...]
) -> None:
    member = await having(user, home)

    answer = await member.acknowledge(*said)

    assert errors_of(answer) == {0: ErrorCode.INVALID_REQUEST}
    assert partitions_of(answer)[0].error_message is None
    assert errors_of(await member.acknowledge((0, 9, ACCEPT))) == {0: NONE}


async def test_a_batch_may_begin_where_the_one_before_ends_as_in_apache_kafka(user: User, home: Home) -> None:
    member = await having(user, home)
    answer = await member.acknowledge((0, 4, ACCEPT), (4, 9, ACCEPT))
    # It is then the share partition that finds record 4 acknowledged already.
    assert errors_of(answer) == {0: ErrorCode.INVALID_RECORD_STATE}


async def test_what_is_not_acquired_cannot_be_acknowledged(user: User, another: User, home: Home) -> None:
    ann = await having(user, home)
    ben = Member(another, ann.topic_id, "ben")
    await ben.fetch(0)

    answer = await ben.acknowledge((0, 9, ACCEPT))

    assert errors_of(answer) == {0: ErrorCode.INVALID_RECORD_STATE}
    assert partitions_of(answer)[0].error_message == "Member is not the owner of batch record"
    assert errors_of(await ann.acknowledge((0, 9, ACCEPT))) == {0: NONE}
    assert errors_of(await ann.acknowledge((0, 9, ACCEPT))) == {0: NONE}  # below the start offset: taken


async def test_version_1_knows_no_renewal(user: User, home: Home) -> None:
    member = await having(user, home, 1)
    assert errors_of(await member.acknowledge((0, 9, RENEW))) == {0: ErrorCode.INVALID_REQUEST}


async def test_a_renewed_lock_lasts_as_long_as_a_new_one(user: User, home: Home) -> None:
    member = await having(user, home)
    await home.pass_time(LOCK_MS - 1)

    assert errors_of(await member.acknowledge((0, 9, RENEW), is_renew_ack=True)) == {0: NONE}

    await home.pass_time(LOCK_MS - 1)
    assert errors_of(await member.acknowledge((0, 9, ACCEPT))) == {0: NONE}


async def test_a_group_may_forbid_renewals(user: User, home: Home) -> None:
    member = await having(user, home)
    assert await user.try_to_alter(GROUP_RESOURCE, GROUP, share_renew_acknowledge_enable="false") is NONE

    answer = await member.acknowledge((0, 9, RENEW), is_renew_ack=True)

    assert errors_of(answer) == {0: ErrorCode.INVALID_RECORD_STATE}


async def test_partitions_that_nobody_knows_or_fetches_are_told(user: User, home: Home) -> None:
    member = await having(user, home)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    answer = await member.acknowledge((0, 0, ACCEPT), partition=1)
    assert errors_of(answer) == {1: unknown}
    assert partitions_of(answer)[0].error_message == unknown.message
    answer = await member.acknowledge((0, 0, ACCEPT), partition=7)
    assert (errors_of(answer), partitions_of(answer)[0].error_message) == ({7: unknown}, None)
    member.topic_id = UNKNOWN_ID
    assert errors_of(await member.acknowledge((0, 0, ACCEPT))) == {0: ErrorCode.UNKNOWN_TOPIC_ID}


async def test_a_partition_of_which_nothing_is_said_is_told_only_beside_others(
    user: User, home: Home
) -> None:
    member = await having(user, home)
    assert (await member.acknowledge(partition=1)).responses == []


async def test_a_request_without_partitions_moves_the_session_all_the_same(user: User, home: Home) -> None:
    member = await having(user, home)
    before = member.epoch

    assert (await member.acknowledge(partition=0)).responses == []

    assert member.epoch == before + 1
    assert await member.try_to_fetch() is NONE


async def test_only_in_a_session_anything_is_acknowledged(user: User, home: Home) -> None:
    member = await having(user, home)
    for epoch in (0, member.epoch + 1):
        answer = await member.acknowledge((0, 9, ACCEPT), epoch=epoch)
        assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, [])
    stranger = Member(user, member.topic_id, "ben")
    assert (await stranger.acknowledge(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    for name in ("", "m" * 37):
        nobody = Member(user, member.topic_id, name)
        assert (await nobody.acknowledge(epoch=1)).error_code == ErrorCode.INVALID_REQUEST


async def test_with_the_last_request_of_a_session_all_else_is_given_back(
    user: User, another: User, home: Home
) -> None:
    ann = await having(user, home)
    ben = Member(another, ann.topic_id, "ben")
    await ben.fetch(0, max_records=0)

    answer = await ann.acknowledge((0, 4, ACCEPT), epoch=FINAL)

    assert errors_of(answer) == {0: NONE}
    await settle()
    assert acquired(await ben.fetch(max_wait_ms=500)) == [(5, 9, 2)]
    assert (await ann.acknowledge(epoch=FINAL)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_the_leader_of_a_reset_group_is_fenced_and_loads_the_state_anew(user: User, home: Home) -> None:
    member = await having(user, home)
    sharing = Sharing(user, member.topic_id)
    await sharing.initialize(state_epoch=2, start_offset=3)

    answer = await member.acknowledge((0, 9, ACCEPT))

    assert errors_of(answer) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    [told] = partitions_of(answer)
    node_id = home.config().node_id
    assert told.current_leader.leader_id == node_id
    assert [endpoint.node_id for endpoint in answer.node_endpoints] == [node_id]
    assert acquired(await member.fetch(max_wait_ms=500)) == [(3, 9, 1)]


async def test_of_a_partition_that_is_named_twice_the_later_counts(user: User, home: Home) -> None:
    member = await having(user, home)
    twice = [
        AcknowledgePartition(
            partition_index=0,
            acknowledgement_batches=[
                AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[type_])
            ],
        )
        for first, last, type_ in ((3, 2, ACCEPT), (0, 9, RELEASE))
    ]
    request = ShareAcknowledgeRequest(
        group_id=GROUP,
        member_id=member.member_id,
        share_session_epoch=member.epoch,
        topics=[AcknowledgeTopic(topic_id=member.topic_id, partitions=twice)],
    )

    assert errors_of(await user.send(request, 2)) == {0: NONE}

    member.epoch += 1
    assert acquired(await member.fetch()) == [(0, 9, 2)]
