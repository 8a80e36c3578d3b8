"""Checks before a handler, as an authorizer and quotas would have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import inf
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.api import CONTROLLER_LISTENER, NO_RESPONSE, Api, Later, handles
from pykafka_broker.apis.context import RequestContext
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.apis.needs import (
    Need,
    on_any_topic,
    on_cluster,
    on_group_of_request,
    on_groups,
    on_topics,
    partly_on_cluster,
)
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation, AclResourceType, Requester
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quota
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.identity import ANONYMOUS
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.support.serving import FETCH, HEARTBEAT, Doors, Served, produce_of

Allowed = tuple[AclOperation, AclResourceType, str]


class OnlyThese:
    """Allows what it lists."""

    def __init__(self, *allowed: Allowed) -> None:
        self.allowed = allowed

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        is_attempt: bool = True,
    ) -> bool:
        return (operation, resource_type, name) in self.allowed

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        return any((one, type_) == (operation, resource_type) for one, type_, _ in self.allowed)

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
        *,
        is_attempt: bool = True,
    ) -> Collection[str]:
        return [name for name in names if self.allows(requester, operation, resource_type, name)]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        return sum(
            1 << operation for operation, type_, n in self.allowed if (type_, n) == (resource_type, name)
        )


NOTHING = OnlyThese()


class Throttling:
    """Notes what is recorded; a client that uses `quota` has to wait. Each look at the clock takes 7 ns."""

    is_active = True

    def __init__(self, throttle_ms: int, quota: Quota = Quota.REQUEST) -> None:
        self.recorded: list[tuple[Quota, str, int]] = []
        self._throttle_ms = {quota: throttle_ms}
        self._now_ns = 0

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        self.recorded.append((quota, requester.principal, amount))
        return self._throttle_ms.get(quota, 0)

    def most_bytes_fetched(self, requester: Requester) -> float:
        return inf

    def processing_ns(self) -> int:
        self._now_ns += 7
        return self._now_ns


class OneRequestEach:
    """Every user with a client id has a quota of one request; after that it has to wait."""

    is_active = True

    def __init__(self, throttle_ms: int) -> None:
        self.used: Counter[tuple[str, str | None]] = Counter()
        self._throttle_ms = throttle_ms

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        account = requester.principal, requester.client_id
        self.used[account] += 1
        return self._throttle_ms if self.used[account] > 1 else 0

    def most_bytes_fetched(self, requester: Requester) -> float:
        return inf

    def processing_ns(self) -> int:
        return 0


def answer(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=0)


def refused(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=int(error.code))


READ_GROUP = on_group_of_request(AclOperation.READ)
heartbeat = handles(HeartbeatRequest, versions="0-4", needs=[READ_GROUP], error_response=refused)(answer)


def served(api: Api[Any], authorizer: OnlyThese = NOTHING, throttle_ms: int | None = None) -> Served:
    quotas = UNLIMITED if throttle_ms is None else Throttling(throttle_ms)
    return Served(dispatch=Dispatch([api], authorizer=authorizer, quotas=quotas))


@pytest.mark.parametrize("api", [api for api in APIS if api.check is None], ids=lambda api: api.name)
def test_where_all_is_allowed_the_handler_itself_is_called(api: Api[Any]) -> None:
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


EACH_TOPIC = on_topics(AclOperation.DESCRIBE)
EITHER = partly_on_cluster(AclOperation.DESCRIBE) | on_groups(AclOperation.DESCRIBE)


@pytest.mark.parametrize(
    ("need", "unchecked"),
    [
        (EACH_TOPIC, "DESCRIBE on each TOPIC"),
        (EITHER, "DESCRIBE on CLUSTER, DESCRIBE on each GROUP"),
        (EITHER.asked_by_handler(), "DESCRIBE on each GROUP"),
        (on_cluster(AclOperation.ALTER) | EACH_TOPIC, "DESCRIBE on each TOPIC"),
    ],
    ids=str,
)
def test_an_authorizer_that_a_handler_does_not_ask_cannot_be_in_force(need: Need, unchecked: str) -> None:
    api = handles(HeartbeatRequest, versions="0-4", needs=[READ_GROUP, need])(answer)

    with pytest.raises(NotImplementedError) as refusal:
        Dispatch([api], authorizer=OnlyThese())

    assert str(refusal.value) == (
        f"Heartbeat needs {unchecked}, and its handler does not ask the authorizer yet: "
        "only ALLOW_ALL can be in force"
    )


async def test_an_api_whose_handler_asks_about_each_resource_is_served_behind_an_authorizer() -> None:
    def count_visible(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
        names = authorizer.filter(ctx, AclOperation.DESCRIBE, AclResourceType.TOPIC, ["hidden", "shown"])
        return HeartbeatResponse(error_code=len(names))

    authorizer = OnlyThese((AclOperation.DESCRIBE, AclResourceType.TOPIC, "shown"))
    api = handles(HeartbeatRequest, versions="0-4", needs=[EACH_TOPIC.asked_by_handler()])(count_visible)
    client = served(api, authorizer)

    client.send(HEARTBEAT)

    assert client.answers() == [(1, HeartbeatResponse(error_code=1))]


def test_every_handler_of_a_node_asks_the_authorizer() -> None:
    assert len(Dispatch(APIS, authorizer=OnlyThese()).apis) == len(APIS)
    assert Dispatch(CONTROLLER_APIS, CONTROLLER_LISTENER, OnlyThese()).apis


async def test_it_is_enough_to_be_allowed_on_any_topic_where_that_is_enough() -> None:
    either = on_cluster(AclOperation.IDEMPOTENT_WRITE) | on_any_topic(AclOperation.WRITE)
    api = handles(HeartbeatRequest, versions="0-4", needs=[either], error_response=refused)(answer)
    writer = served(api, OnlyThese((AclOperation.WRITE, AclResourceType.TOPIC, "t")))
    reader = served(api, OnlyThese((AclOperation.READ, AclResourceType.TOPIC, "t")))

    for client in (writer, reader):
        client.send(HEARTBEAT)

    assert writer.answers() == [(1, HeartbeatResponse(error_code=0))]
    refusal = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert reader.answers() == [(1, HeartbeatResponse(error_code=refusal))]


async def test_a_client_over_its_quota_is_answered_and_waits_before_its_next_request() -> None:
    client = Served(dispatch=Dispatch([heartbeat], quotas=Throttling(500)))

    client.send(HEARTBEAT, HEARTBEAT)
    assert client.answers() == [(1, HeartbeatResponse(error_code=0, throttle_time_ms=500))]

    await client.clock.pass_time(499)
    assert client.answered() == [1]
    await client.clock.pass_time(1)
    assert client.answered() == [1, 2]


async def test_a_version_without_a_throttle_time_is_answered_without() -> None:
    client = Served(dispatch=Dispatch([heartbeat], quotas=Throttling(500)))

    client.transport.feed(client.peer.request(HEARTBEAT, version=0) + client.peer.request(HEARTBEAT))

    assert client.answers() == [(1, HeartbeatResponse(error_code=0))]


async def test_a_quota_counts_each_client_id_of_a_user_by_itself() -> None:
    quotas = OneRequestEach(500)
    client = Served(dispatch=Dispatch([heartbeat], quotas=quotas))

    for client_id in ("one", "two", None, "two"):
        client.transport.feed(client.peer.request(HEARTBEAT, client_id=client_id))

    assert quotas.used == {(ANONYMOUS, "one"): 1, (ANONYMOUS, "two"): 2, (ANONYMOUS, None): 1}
    within, over = HeartbeatResponse(error_code=0), HeartbeatResponse(error_code=0, throttle_time_ms=500)
    assert client.answers() == [(1, within), (2, within), (3, within), (4, over)]


async def test_the_bytes_of_a_request_that_writes_count_with_its_answer() -> None:
    quotas = Throttling(300, Quota.PRODUCE)
    recorded_before: list[tuple[Quota, str, int]] = []

    def append(request: ProduceRequest, ctx: RequestContext) -> ProduceResponse:
        recorded_before.extend(quotas.recorded)
        return ProduceResponse(responses=[])

    api = handles(ProduceRequest, versions="3-13", needs=(), quota=Quota.PRODUCE)(append)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(produce_of(b"x" * 100))

    request_bytes = len(client.peer.request(produce_of(b"x" * 100))) - 4
    assert recorded_before == []
    assert quotas.recorded == [(Quota.PRODUCE, ANONYMOUS, request_bytes), (Quota.REQUEST, ANONYMOUS, 7)]
    assert client.answers() == [(1, ProduceResponse(responses=[], throttle_time_ms=300))]


async def test_the_wait_of_a_parked_fetch_costs_no_time() -> None:
    quotas = Throttling(300)
    doors = Doors()

    async def park(request: FetchRequest, ctx: RequestContext) -> FetchResponse:
        records = await doors.wait()
        data = PartitionData(
            partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=records
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    api = handles(FetchRequest, versions="4-18", needs=(), quota=Quota.FETCH)(park)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(FETCH, FETCH)
    await client.clock.pass_time(1_000)
    assert quotas.recorded == []
    doors.open(b"x" * 60)
    await client.clock.pass_time(299)

    # Calling the coroutine, its run until it waits, and its run to the end: three times 7 ns.
    assert quotas.recorded == [(Quota.REQUEST, ANONYMOUS, 21)]
    [(_, fetched)] = client.answers()
    assert fetched.throttle_time_ms == 300
    assert doors.waiting == []
    await client.clock.pass_time(1)
    assert len(doors.waiting) == 1


async def test_a_producer_without_answers_is_slowed_down_for_its_bytes_and_not_for_its_time() -> None:
    quotas = Throttling(300, Quota.PRODUCE)

    def append(request: ProduceRequest, ctx: RequestContext) -> object:
        return NO_RESPONSE

    api = handles(ProduceRequest, versions="3-13", needs=(), quota=Quota.PRODUCE)(append)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(produce_of(b"x", acks=0), produce_of(b"x", acks=0))
    await client.clock.pass_time(299)
    assert [quota for quota, _, _ in quotas.recorded] == [Quota.PRODUCE]
    await client.clock.pass_time(1)
    assert [quota for quota, _, _ in quotas.recorded] == [Quota.PRODUCE, Quota.PRODUCE]


async def test_fetches_of_other_brokers_do_not_count() -> None:
    quotas = Throttling(300)

    def fetch(request: FetchRequest, ctx: RequestContext) -> FetchResponse:
        return FetchResponse(responses=[])

    api = handles(FetchRequest, versions="4-18", needs=(), quota=Quota.FETCH)(fetch)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    of_a_broker = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=1, topics=[])
    client.send(of_a_broker, of_a_broker)

    assert client.answered() == [1, 2]
    assert quotas.recorded == []


async def test_while_nobody_has_a_quota_nothing_is_recorded() -> None:
    quotas = Throttling(300)
    quotas.is_active = False
    client = Served(dispatch=Dispatch([heartbeat], quotas=quotas))

    client.send(HEARTBEAT, HEARTBEAT)

    assert client.answered() == [1, 2]
    assert quotas.recorded == []


async def test_a_request_that_was_passed_on_is_told_to_wait_and_its_connection_goes_on() -> None:
    passed_on = admitted(heartbeat, ALLOW_ALL, Throttling(300), mutes=False)
    client = Served(dispatch=Dispatch([handles(HeartbeatRequest, versions="0-4", needs=())(passed_on)]))

    client.send(HEARTBEAT, HEARTBEAT)

    slowed_down = HeartbeatResponse(error_code=0, throttle_time_ms=300)
    assert client.answers() == [(1, slowed_down), (2, slowed_down)]


async def test_an_answer_that_comes_later_counts_when_it_is_there() -> None:
    quotas = Throttling(300)
    doors = Doors()

    def later(request: HeartbeatRequest, ctx: RequestContext) -> Later:
        return Later(doors.wait())

    api = handles(HeartbeatRequest, versions="0-4", needs=())(later)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(HEARTBEAT)
    assert quotas.recorded == []
    doors.open(HeartbeatResponse(error_code=0))
    await client.clock.pass_time(1)

    assert client.answers() == [(1, HeartbeatResponse(error_code=0, throttle_time_ms=300))]


async def test_a_handler_that_records_by_itself_sets_the_throttle_time_of_its_answer() -> None:
    quotas = Throttling(800, Quota.CONTROLLER_MUTATION)

    def create(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
        throttle_ms = quotas.record(Quota.CONTROLLER_MUTATION, ctx, 3)
        return HeartbeatResponse(error_code=0, throttle_time_ms=throttle_ms)

    api = handles(HeartbeatRequest, versions="0-4", needs=(), quota=Quota.CONTROLLER_MUTATION)(create)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(HEARTBEAT, HEARTBEAT)
    await client.clock.pass_time(799)

    assert client.answers() == [(1, HeartbeatResponse(error_code=0, throttle_time_ms=800))]
    await client.clock.pass_time(1)
    assert client.answered() == [1, 2]


async def test_a_request_that_fails_counts_too() -> None:
    quotas = Throttling(300)

    def fail(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    api = handles(HeartbeatRequest, versions="0-4", needs=(), error_response=refused)(fail)
    client = Served(dispatch=Dispatch([api], quotas=quotas))

    client.send(HEARTBEAT, HEARTBEAT)

    assert client.answered() == [1]
    assert quotas.recorded == [(Quota.REQUEST, ANONYMOUS, 7)]


async def test_requests_between_brokers_are_exempt_from_quotas() -> None:
    exempt = handles(HeartbeatRequest, versions="0-4", needs=(), quota=Quota.EXEMPT)(answer)

    assert admitted(exempt, ALLOW_ALL, Throttling(500)) is exempt.handle


async def test_a_listener_of_controllers_serves_what_messages_say() -> None:
    on_controllers = Dispatch(APIS, CONTROLLER_LISTENER).apis.values()

    assert [api.name for api in on_controllers] == [
        "Fetch",
        "SaslHandshake",
        "ApiVersions",
        "CreateTopics",
        "DeleteTopics",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "DescribeConfigs",
        "AlterConfigs",
        "SaslAuthenticate",
        "CreatePartitions",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
        "ElectLeaders",
        "IncrementalAlterConfigs",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AlterClientQuotas",
        "DescribeUserScramCredentials",
        "AlterUserScramCredentials",
        "DescribeQuorum",
        "UpdateFeatures",
        "DescribeCluster",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
    ]
