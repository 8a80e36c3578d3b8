"""`max.message.bytes` of the internal topics bounds what coordinators append; what each API answers then."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import add_offsets_to_txn as offsets_in_txn
from pykafka_broker.protocol.messages import add_partitions_to_txn as partitions_in_txn
from pykafka_broker.protocol.messages import consumer_group_heartbeat as beating
from pykafka_broker.protocol.messages import delete_groups as deleting
from pykafka_broker.protocol.messages import end_txn as ending
from pykafka_broker.protocol.messages import init_producer_id as initialising
from pykafka_broker.protocol.messages import join_group as joining
from pykafka_broker.protocol.messages import sync_group as syncing
from pykafka_broker.protocol.messages import txn_offset_commit as committing
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

LIMIT = 2_000
FEW = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
OK, TOO_LARGE = ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture
async def limited() -> AsyncIterator[User]:
    """A user of a broker whose internal topics take batches of at most `LIMIT` bytes."""
    async with Home(FEW).running() as user:
        await user.create_topic("orders", 600)
        await user.find_coordinator("g")
        await user.send(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
        for topic in ("__consumer_offsets", "__transaction_state"):
            await user.alter_topic(topic, max_message_bytes=str(LIMIT))
        yield user


async def committed(user: User, metadata: str) -> ErrorCode:
    return await user.try_to_commit("g", "orders", 1, metadata=metadata)


async def test_a_commit_may_fill_the_batch_to_the_byte(limited: User) -> None:
    fits = "m" * 1_870  # found with Apache Kafka 4.3.1, for names as long as these
    group, topic = "g1", "small"
    await limited.create_topic(topic)
    assert await limited.try_to_commit(group, topic, 1, metadata=fits) is OK
    assert await limited.try_to_commit(group, topic, 2, metadata=fits + "m") is TOO_LARGE
    assert await limited.committed(group) == {(topic, 0): 1}


async def test_the_limit_may_be_changed_at_any_time(limited: User) -> None:
    assert await committed(limited, "m" * 2_000) is TOO_LARGE
    await limited.alter_topic("__consumer_offsets", max_message_bytes="3000")
    assert await committed(limited, "m" * 2_000) is OK
    await limited.alter_topic("__consumer_offsets", max_message_bytes="100")
    assert await committed(limited, "") is TOO_LARGE


async def test_what_counts_is_the_size_of_the_compressed_batch() -> None:
    async with Home({**FEW, "offsets.topic.compression.codec": "1"}).running() as user:
        await user.create_topic("orders")
        await user.find_coordinator("g")
        await user.alter_topic("__consumer_offsets", max_message_bytes=str(LIMIT))
        assert await committed(user, "m" * 4_000) is OK


async def join(user: User, member_id: str) -> joining.JoinGroupResponse:
    request = joining.JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[joining.JoinGroupRequestProtocol(name="range", metadata=bytes(3_000))],
    )
    answer: joining.JoinGroupResponse = await user.send(request, 9)
    return answer


async def sync(user: User, joined: joining.JoinGroupResponse, size: int) -> tuple[ErrorCode, bytes]:
    member_id = joined.member_id
    request = syncing.SyncGroupRequest(
        group_id="readers",
        generation_id=joined.generation_id,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[syncing.SyncGroupRequestAssignment(member_id=member_id, assignment=bytes(size))],
    )
    answer = await user.send(request, 5)
    return ErrorCode(answer.error_code), bytes(answer.assignment)


async def test_a_generation_is_refused_when_it_is_assigned_and_may_be_tried_again(limited: User) -> None:
    member_id = (await join(limited, "")).member_id
    joined = await join(limited, member_id)
    assert (joined.error_code, joined.generation_id) == (OK, 1)
    assert await sync(limited, joined, 10) == (TOO_LARGE, b"")
    await limited.alter_topic("__consumer_offsets", max_message_bytes="4000")
    joined = await join(limited, member_id)
    assert (joined.error_code, joined.generation_id) == (OK, 2)
    assert await sync(limited, joined, 10) == (OK, bytes(10))


async def test_a_subscription_is_refused_and_the_member_stays_as_it_was(limited: User) -> None:
    async def beat(epoch: int, *names: str, group: str = "g") -> beating.ConsumerGroupHeartbeatResponse:
        request = beating.ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=list(names),
            topic_partitions=[] if epoch == 0 else None,
        )
        answer: beating.ConsumerGroupHeartbeatResponse = await limited.send(request, 1)
        return answer

    many = [f"{number:0200}" for number in range(20)]
    assert (await beat(0, *many)).error_code == TOO_LARGE
    epoch = (await beat(0, "nowhere")).member_epoch
    assert epoch == (await beat(0, "nowhere", group="never refused")).member_epoch > 0
    assert (await beat(epoch, *many)).error_code == TOO_LARGE
    assert (await beat(epoch, "nowhere")).member_epoch == epoch


async def test_what_transactions_append_is_refused_alone_and_they_go_on(limited: User) -> None:
    request = initialising.InitProducerIdRequest(transactional_id="i" * LIMIT, transaction_timeout_ms=60_000)
    assert (await limited.send(request, 4)).error_code == TOO_LARGE
    request = initialising.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    producer = await limited.send(request, 4)
    whose = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}

    async def add(count: int) -> set[int]:
        topic = partitions_in_txn.AddPartitionsToTxnTopic(name="orders", partitions=list(range(count)))
        answer = await limited.send(
            partitions_in_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="t",
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[topic],
            ),
            3,
        )
        [topic_answer] = answer.results_by_topic_v3_and_below
        return {each.partition_error_code for each in topic_answer.results_by_partition}

    assert (await add(600), await add(3)) == ({TOO_LARGE}, {OK})
    adding = offsets_in_txn.AddOffsetsToTxnRequest(transactional_id="t", group_id="g", **whose)
    assert (await limited.send(adding, 3)).error_code == OK

    async def commit(metadata: str) -> int:
        partition = committing.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=9, committed_metadata=metadata
        )
        topic = committing.TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])
        request = committing.TxnOffsetCommitRequest(
            transactional_id="t", group_id="g", topics=[topic], **whose
        )
        code: int = (await limited.send(request, 3)).topics[0].partitions[0].error_code
        return code

    assert (await commit("m" * 3_000), await commit("")) == (TOO_LARGE, OK)
    end = ending.EndTxnRequest(transactional_id="t", committed=True, **whose)
    assert (await limited.send(end, 3)).error_code == OK
    assert await limited.committed("g") == {("orders", 0): 9}


async def test_deletions_are_spread_over_as_many_batches_as_they_need(limited: User) -> None:
    for partition in range(100):
        await limited.commit("g", "orders", 1, partition=partition)
    answer = await limited.send(deleting.DeleteGroupsRequest(groups_names=["g"]), 2)
    assert [(each.group_id, each.error_code) for each in answer.results] == [("g", OK)]
    assert await limited.committed("g") == {}
