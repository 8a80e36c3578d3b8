"""UnregisterBroker (64): a broker is forgotten, be it gone, fenced or alive."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User


async def brokers(user: User) -> list[tuple[int, bool]]:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    return [(broker.broker_id, broker.is_fenced) for broker in (await user.send(request, 2)).brokers]


@pytest.mark.parametrize("broker_id", [7, 0, -1])
async def test_an_unknown_broker_cannot_be_forgotten(user: User, broker_id: int) -> None:
    assert await user.send(UnregisterBrokerRequest(broker_id=broker_id), 0) == UnregisterBrokerResponse(
        error_code=int(ErrorCode.BROKER_ID_NOT_REGISTERED),
        error_message=f"Broker ID {broker_id} is not currently registered",
    )


async def test_the_broker_that_answers_is_forgotten_until_its_next_start(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("t")
        assert await user.send(UnregisterBrokerRequest(broker_id=1), 0) == UnregisterBrokerResponse(
            error_code=0, error_message=""
        )
        assert await brokers(user) == []
        assert (await user.metadata("t")).topics[0].partitions[0].leader_id == -1
        again = await user.send(UnregisterBrokerRequest(broker_id=1), 0)
        assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    async with home.running() as user:
        assert await brokers(user) == [(1, False)]
        await user.produce("t", b"one")
        assert await user.values("t") == [b"one"]
