"""Checks before a handler, as an authorizer and quotas would have them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.api import Api, handles
from pykafka_broker.apis.context import RequestContext
from pykafka_broker.apis.needs import on_cluster, on_group
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation, AclResourceType, Requester
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quota
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.serving import HEARTBEAT, Served

Allowed = tuple[AclOperation, AclResourceType, str]


class OnlyThese:
    """Allows what it lists."""

    def __init__(self, *allowed: Allowed) -> None:
        self.allowed = allowed

    def allows(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        return (operation, resource_type, name) in self.allowed

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
    ) -> Collection[str]:
        return [name for name in names if self.allows(requester, operation, resource_type, name)]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        return sum(
            1 << operation for operation, type_, n in self.allowed if (type_, n) == (resource_type, name)
        )


class Throttling:
    """Lets each request cost the same."""

    def __init__(self, throttle_ms: int) -> None:
        self._throttle_ms = throttle_ms

    def throttle_ms(self, quota: Quota, requester: Requester) -> int:
        return self._throttle_ms


def answer(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=0)


def refused(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=int(error.code))


READ_GROUP = on_group(AclOperation.READ)
heartbeat = handles(HeartbeatRequest, versions="0-4", needs=[READ_GROUP], error_response=refused)(answer)


def served(api: Api, authorizer: OnlyThese = OnlyThese(), throttle_ms: int | None = None) -> Served:  # noqa: B008
    quotas = UNLIMITED if throttle_ms is None else Throttling(throttle_ms)
    return Served(dispatch=Dispatch([api], authorizer=authorizer, quotas=quotas))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_where_all_is_allowed_the_handler_itself_is_called(api: Api) -> None:
    assert admitted(api, ALLOW_ALL, UNLIMITED) is api.handle


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ((AclOperation.READ, AclResourceType.GROUP, "g"), ErrorCode.NONE),
        ((AclOperation.READ, AclResourceType.GROUP, "another"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((AclOperation.DESCRIBE, AclResourceType.GROUP, "g"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
async def test_a_request_is_refused_for_the_group_it_is_about(allowed: Allowed, error: ErrorCode) -> None:
    client = served(heartbeat, OnlyThese(allowed))

    client.send(HEARTBEAT)

    assert client.answers() == [(1, HeartbeatResponse(error_code=int(error)))]


async def test_one_need_does_as_well_as_another() -> None:
    either = on_cluster(AclOperation.ALTER) | on_cluster(AclOperation.CLUSTER_ACTION)
    api = handles(HeartbeatRequest, versions="0-4", needs=[either], error_response=refused)(answer)
    broker = OnlyThese((AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, "kafka-cluster"))
    between_brokers, anyone = served(api, broker), served(api)

    for client in (between_brokers, anyone):
        client.send(HEARTBEAT)

    assert between_brokers.answers() == [(1, HeartbeatResponse(error_code=0))]
    refusal = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert anyone.answers() == [(1, HeartbeatResponse(error_code=refusal))]


async def test_a_need_that_a_request_does_not_have_is_not_checked() -> None:
    never = on_cluster(AclOperation.CLUSTER_ACTION, lambda request: request.member_id == "another broker")
    client = served(handles(HeartbeatRequest, versions="0-4", needs=[never])(answer))

    client.send(HEARTBEAT)

    assert client.answers() == [(1, HeartbeatResponse(error_code=0))]


async def test_a_client_over_its_quota_is_answered_and_waits_before_its_next_request() -> None:
    client = Served(dispatch=Dispatch([heartbeat], quotas=Throttling(500)))

    client.send(HEARTBEAT, HEARTBEAT)
    assert client.answered() == [1]

    await client.clock.pass_time(499)
    assert client.answered() == [1]
    await client.clock.pass_time(1)
    assert client.answered() == [1, 2]


async def test_requests_between_brokers_are_exempt_from_quotas() -> None:
    exempt = handles(HeartbeatRequest, versions="0-4", needs=(), quota=Quota.EXEMPT)(answer)

    assert admitted(exempt, ALLOW_ALL, Throttling(500)) is exempt.handle


async def test_a_listener_of_controllers_serves_what_messages_say() -> None:
    on_controllers = Dispatch(APIS, "controller").apis.values()

    assert [api.name for api in on_controllers] == [
        "Fetch",
        "ApiVersions",
        "CreateTopics",
        "DeleteTopics",
        "DescribeConfigs",
        "AlterConfigs",
        "CreatePartitions",
        "IncrementalAlterConfigs",
        "DescribeCluster",
    ]
