"""ListConfigResources (74): what can be configured, and what has been."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pykafka_broker.testing.user import User

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP


async def listed(user: User, *kinds: int, version: int = 1) -> set[tuple[int, str]]:
    answer = await user.send(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    assert answer.error_code == 0
    return {(found.resource_type, found.resource_name) for found in answer.config_resources}


async def configured(user: User) -> None:
    await user.create_topic("t")
    assert await user.try_to_alter(GROUP, "g", consumer_session_timeout_ms="50000") == 0
    assert await user.try_to_alter(METRICS, "m", interval_ms="5000") == 0


EVERYTHING = {(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")}


async def test_without_types_everything_is_listed(user: User) -> None:
    await configured(user)

    assert await listed(user) == EVERYTHING


@pytest.mark.parametrize("kind", [TOPIC, BROKER, LOGGER, METRICS, GROUP])
async def test_one_type_is_listed_for_those_who_name_it(user: User, kind: ResourceType) -> None:
    await configured(user)

    assert await listed(user, kind) == {found for found in EVERYTHING if found[0] == kind}


async def test_version_0_lists_client_metrics_and_nothing_else(user: User) -> None:
    await configured(user)

    assert await listed(user, version=0) == {(METRICS, "m")}


async def test_groups_and_metrics_are_listed_while_something_is_set(user: User) -> None:
    await configured(user)
    await user.try_to_alter(GROUP, "g", consumer_session_timeout_ms=None)

    assert await listed(user, GROUP, METRICS) == {(METRICS, "m")}


@pytest.mark.parametrize("kinds", [[0], [64], [TOPIC, 3]])
async def test_an_unknown_type_is_not_supported(user: User, kinds: list[int]) -> None:
    answer = await user.send(ListConfigResourcesRequest(resource_types=kinds), 1)

    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
