"""TxnOffsetCommit (28): positions that count once the transaction commits."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.txn_offset_commit import txn_offset_commit
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every, only_member
from tests.apis.test_add_offsets_to_txn import error_of as add_offsets
from tests.apis.transacting import Producer

OK = ErrorCode.NONE
GROUP = "readers"
generations = pytest.mark.parametrize("old", [True, False], ids=["version 1", "version 2"])


async def begin(user: User, *, old: bool = False) -> Producer:
    """A producer that may commit offsets of the group in its transaction."""
    await user.create_topic("t")
    await user.find_coordinator(GROUP)
    producer = await Producer.of(user, old=old)
    if old:
        assert await add_offsets(producer, group=GROUP) == OK
    return producer


async def stable(user: User) -> tuple[int, ErrorCode]:
    """The position of t-0 for a reader that wants no unstable one, and the error."""
    asked = OffsetFetchRequestGroup(
        group_id=GROUP, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    answer = await user.send(OffsetFetchRequest(groups=[asked], require_stable=True), 9)
    found = answer.groups[0].topics[0].partitions[0]
    return found.committed_offset, ErrorCode(found.error_code)


@generations
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_positions_wait_for_the_outcome(user: User, old: bool, commit: bool) -> None:
    producer = await begin(user, old=old)
    await user.commit(GROUP, "t", 3)

    assert await producer.try_to_commit(GROUP, "t", 7) == OK
    assert await user.committed(GROUP) == {("t", 0): 3}
    assert await stable(user) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)

    await producer.end(commit=commit)
    assert await user.committed(GROUP) == {("t", 0): 7 if commit else 3}
    assert await stable(user) == (7 if commit else 3, OK)


@pytest.mark.parametrize("version", every(txn_offset_commit))
async def test_every_version_commits(user: User, version: int) -> None:
    producer = await begin(user, old=version < 5)

    assert await producer.try_to_commit(GROUP, "t", 7, version=version) == OK
    await producer.end()
    assert await user.committed(GROUP) == {("t", 0): 7}


@pytest.mark.parametrize("version", every(txn_offset_commit))
async def test_who_has_not_added_the_group_is_refused_in_the_words_of_its_version(
    user: User, version: int
) -> None:
    await user.create_topic("t")
    await user.find_coordinator(GROUP)
    producer = await Producer.of(user, old=True)
    expected = {4: ErrorCode.TRANSACTION_ABORTABLE, 5: OK}.get(version, ErrorCode.INVALID_TXN_STATE)

    assert await producer.try_to_commit(GROUP, "t", 7, version=version) == expected


@generations
async def test_a_plain_commit_after_it_wins_although_the_marker_comes_later(user: User, old: bool) -> None:
    producer = await begin(user, old=old)
    await producer.try_to_commit(GROUP, "t", 7)
    await user.commit(GROUP, "t", 9)
    await producer.end()

    assert await user.committed(GROUP) == {("t", 0): 9}


async def test_pending_positions_survive_a_kill_and_so_does_their_outcome(home: Home) -> None:
    async with home.running() as user:
        producer = await begin(user)
        await producer.try_to_commit(GROUP, "t", 7)
        after = home.killed()
    async with after.running() as user:
        producer.user = user
        assert await stable(user) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        await producer.end()
        assert await stable(user) == (7, OK)
        later = after.killed()
    async with later.running() as user:
        assert await user.committed(GROUP) == {("t", 0): 7}


async def test_a_member_has_to_be_of_the_present_generation(user: User) -> None:
    producer = await begin(user)
    member = await only_member(user, GROUP)

    async def commit(member_id: str, generation: int) -> ErrorCode:
        return await producer.try_to_commit(GROUP, "t", 7, member_id=member_id, generation_id=generation)

    assert await commit("unknown", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await commit(member, 2) == ErrorCode.ILLEGAL_GENERATION
    assert await commit(member, 1) == OK
    # Producers of before KIP-447 do not say for whom they commit.
    assert await commit("", -1) == OK


async def test_a_generation_of_a_group_that_does_not_exist_is_wrong(user: User) -> None:
    producer = await begin(user)

    error = await producer.try_to_commit(GROUP, "t", 7, member_id="m", generation_id=1)
    assert error == ErrorCode.ILLEGAL_GENERATION


async def test_positions_of_partitions_that_do_not_exist_are_refused(user: User) -> None:
    producer = await begin(user)

    assert await producer.try_to_commit(GROUP, "missing", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await producer.try_to_commit(GROUP, "t", 7, partition=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_group_must_have_a_name(user: User) -> None:
    producer = await begin(user)

    assert await producer.try_to_commit("", "t", 7) == ErrorCode.INVALID_GROUP_ID


async def test_a_fenced_producer_commits_nothing(user: User) -> None:
    producer = await begin(user)
    await Producer.of(user)

    assert await producer.try_to_commit(GROUP, "t", 7) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await user.committed(GROUP) == {}
