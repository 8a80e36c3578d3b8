"""AllocateProducerIds (67): each block of producer ids goes to one broker."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.controllers import register


async def test_blocks_of_a_thousand_follow_each_other(combined: Home, controllers: User) -> None:
    epoch = await register(controllers, combined)
    request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch)

    answers = [await controllers.send(request, 0) for _ in range(2)]

    assert answers == [
        AllocateProducerIdsResponse(error_code=0, producer_id_start=start, producer_id_len=1000)
        for start in (0, 1000)
    ]


async def test_a_broker_of_an_earlier_life_gets_none(combined: Home, controllers: User) -> None:
    epoch = await register(controllers, combined)

    answer = await controllers.send(AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch - 1), 0)

    assert answer == AllocateProducerIdsResponse(
        error_code=int(ErrorCode.STALE_BROKER_EPOCH), producer_id_start=0, producer_id_len=0
    )
