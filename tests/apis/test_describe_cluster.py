"""DescribeCluster (60): the cluster as an admin client sees it from a broker."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.describe_cluster import describe_cluster, describe_controllers
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every

CLUSTER_OPERATIONS, NOT_ASKED = 8096, -(2**31)
BROKERS, CONTROLLERS = 1, 2


def asking(*, operations: bool = False, **details: Any) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=operations, **details)


@pytest.mark.parametrize("version", every(describe_cluster))
async def test_brokers_are_named_with_the_address_of_the_listener_that_was_asked(
    home: Home, user: User, version: int
) -> None:
    host, port = home.broker.bootstrap_servers.split(":")

    assert await user.send(asking(), version) == DescribeClusterResponse(
        error_code=0,
        cluster_id=home.broker.node.image.cluster_id,
        controller_id=1,
        brokers=[DescribeClusterBroker(broker_id=1, host=host, port=int(port), rack=None)],
    )


async def test_the_rack_is_told(home: Home) -> None:
    home.overrides["broker.rack"] = "r1"
    async with home.running() as user:
        assert [broker.rack for broker in (await user.send(asking(), 2)).brokers] == ["r1"]


@pytest.mark.parametrize("version", ends(describe_cluster))
async def test_allowed_operations_are_told_to_those_who_ask(user: User, version: int) -> None:
    plain, asked = await user.send(asking(), version), await user.send(asking(operations=True), version)

    assert plain.cluster_authorized_operations == NOT_ASKED
    assert asked.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "error", "message"),
    [
        (
            CONTROLLERS,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        ),
        (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 7"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
async def test_a_broker_describes_brokers_only(
    user: User, version: int, endpoint_type: int, error: ErrorCode, message: str
) -> None:
    answer = await user.send(asking(endpoint_type=endpoint_type), version)

    assert (answer.error_code, answer.error_message) == (error, message)
    assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], "", -1)


async def test_there_are_no_fenced_brokers_to_include(user: User) -> None:
    answer = await user.send(asking(include_fenced_brokers=True, endpoint_type=BROKERS), 2)

    assert [(broker.broker_id, broker.is_fenced) for broker in answer.brokers] == [(1, False)]


@pytest.mark.parametrize("version", [1, 2])
async def test_controllers_are_described_on_their_own_listener(
    combined: Home, controllers: User, version: int
) -> None:
    host, port = combined.broker.node.listeners.advertised("CONTROLLER")

    answer = await controllers.send(asking(endpoint_type=CONTROLLERS, operations=True), version)

    assert answer == DescribeClusterResponse(
        error_code=0,
        endpoint_type=CONTROLLERS,
        cluster_id=combined.broker.node.image.cluster_id,
        controller_id=1,
        brokers=[DescribeClusterBroker(broker_id=1, host=host, port=port)],
        cluster_authorized_operations=CLUSTER_OPERATIONS,
    )


@pytest.mark.parametrize("version", every(describe_controllers))
@pytest.mark.parametrize("endpoint_type", [BROKERS, 7])
async def test_a_listener_of_controllers_describes_controllers_only(
    controllers: User, version: int, endpoint_type: int
) -> None:
    answer = await controllers.send(asking(endpoint_type=endpoint_type), version)

    if endpoint_type == BROKERS or version < 1:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if version else ErrorCode.INVALID_REQUEST
        message = (
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
        )
    else:
        error, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 7"
    assert (answer.error_code, answer.error_message, answer.brokers) == (error, message, [])
