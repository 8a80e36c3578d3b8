"""AddOffsetsToTxn (25): a group's partition of `__consumer_offsets` becomes part of the transaction."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.add_offsets_to_txn import add_offsets_to_txn
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.transacting import Producer, described


async def error_of(producer: Producer, version: int = 3, group: str = "readers") -> ErrorCode:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=group,
    )
    return ErrorCode((await producer.user.send(request, version)).error_code)


@pytest.mark.parametrize("version", every(add_offsets_to_txn))
async def test_the_groups_partition_joins_and_is_created_if_need_be(user: User, version: int) -> None:
    producer = await Producer.of(user, old=True)

    assert await error_of(producer, version) == ErrorCode.NONE
    found = await described(user)
    assert found.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("__consumer_offsets", [0])]


@pytest.mark.parametrize("version", every(add_offsets_to_txn))
async def test_a_fenced_producer_is_told_so_in_the_words_of_its_version(user: User, version: int) -> None:
    producer = await Producer.of(user, old=True)
    await Producer.of(user)

    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert await error_of(producer, version) == fenced


async def test_an_unknown_producer_is_refused(user: User) -> None:
    producer = await Producer.of(user, old=True)
    producer.id += 1

    assert await error_of(producer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
