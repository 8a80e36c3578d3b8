"""DescribeClientQuotas (48): the quotas that match a filter."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.describe_client_quotas import describe_client_quotas
from pykafka_broker.controller.core.client_quotas import MatchType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.quotas import component, described, set_quotas


@pytest.mark.parametrize("version", every(describe_client_quotas))
async def test_a_filter_chooses_the_entities(user: User, version: int) -> None:
    await set_quotas(user, {"user": "alice"}, producer_byte_rate=1.0)
    await set_quotas(user, {"user": "alice", "client_id": None}, producer_byte_rate=2.0)
    await set_quotas(user, {"user": None}, producer_byte_rate=3.0)
    alice = ({"user": "alice"}, {"producer_byte_rate": 1.0})
    alice_with_a_client_id = ({"client-id": None, "user": "alice"}, {"producer_byte_rate": 2.0})
    anybody = ({"user": None}, {"producer_byte_rate": 3.0})

    named = component("user", MatchType.EXACT, "alice")
    assert await described(user, named, version=version) == [alice, alice_with_a_client_id]
    assert await described(user, named, strict=True, version=version) == [alice]
    assert await described(user, component("user", MatchType.DEFAULT), version=version) == [anybody]
    assert await described(user, version=version) == [alice, alice_with_a_client_id, anybody]


@pytest.mark.parametrize("version", every(describe_client_quotas))
async def test_a_filter_that_is_refused_finds_nothing(user: User, version: int) -> None:
    request = DescribeClientQuotasRequest(components=[component("group", MatchType.ANY)], strict=False)

    assert await user.send(request, version) == DescribeClientQuotasResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        error_message="Unsupported entity type group",
        entries=None,
    )
