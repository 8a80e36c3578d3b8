"""GetTelemetrySubscriptions (71): who is asked for metrics, for which and how often."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

METRICS = ResourceType.CLIENT_METRICS
ID = bytes(range(16))
TELEMETRY = [71, 72]


async def ask(user: User, instance_id: bytes = ID) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    answer: GetTelemetrySubscriptionsResponse = await user.send(request, 0)
    return answer


async def listed(user: User, name: str = "test", version: int = 4) -> list[int]:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    answer = await user.send(request, version)
    return [row.api_key for row in answer.api_keys if row.api_key in TELEMETRY]


async def test_a_client_is_told_all_that_it_has_to_know(user: User) -> None:
    await user.try_to_alter(METRICS, "m", metrics="org.a", interval_ms="5000")

    assert await ask(user) == GetTelemetrySubscriptionsResponse(
        error_code=0,
        client_instance_id=ID,
        subscription_id=2062385701,
        accepted_compression_types=[4, 3, 1, 2],
        push_interval_ms=5_000,
        telemetry_max_bytes=1_048_576,
        delta_temporality=True,
        requested_metrics=["org.a"],
    )


async def test_without_subscriptions_a_client_asks_again_after_five_minutes(home: Home, user: User) -> None:
    answer = await ask(user)
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)

    assert await ask(user) == GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        client_instance_id=ZERO_UUID,
        subscription_id=0,
        accepted_compression_types=[],
        push_interval_ms=0,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=[],
    )
    await home.clock.pass_time(300_000)
    assert (await ask(user)).error_code == 0


async def test_a_client_without_an_id_gets_one(user: User) -> None:
    ids = {(await ask(user, ZERO_UUID)).client_instance_id for _ in range(2)}

    assert len(ids - {ZERO_UUID}) == 2


async def test_a_subscription_counts_for_clients_that_it_matches_from_its_change_on(user: User) -> None:
    await user.try_to_alter(METRICS, "m", metrics="a", match="client_software_name=tester,client_id=test-.*")
    assert (await ask(user)).requested_metrics == []

    for metrics, version, expected in (("b", 2, []), ("c", 4, ["c"]), ("d", 2, ["d"])):
        await listed(user, "tester", version)
        await user.try_to_alter(METRICS, "m", metrics=metrics)
        assert (await ask(user)).requested_metrics == expected


async def test_a_very_long_name_of_software_is_not_remembered(user: User) -> None:
    await user.try_to_alter(METRICS, "m", metrics="a", match="client_software_name=t+")
    for length, expected in ((257, []), (256, ["a"])):
        await listed(user, "t" * length)
        assert (await ask(user, bytes([length % 7 + 2]) * 16)).requested_metrics == expected


@pytest.mark.parametrize(("enabled", "told"), [("false", []), ("true", TELEMETRY)])
async def test_clients_are_told_of_it_only_where_there_is_a_receiver_and_served_everywhere(
    home: Home, enabled: str, told: list[int]
) -> None:
    home.overrides["telemetry.receiver.enable"] = enabled
    async with home.running() as user:
        assert await listed(user) == told
        assert (await ask(user)).error_code == 0
