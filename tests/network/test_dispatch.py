"""Dispatch: from an API key and a version to what serves it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import has_records
from pykafka_broker.protocol.messages import API_NAMES, response_type
from tests.support.serving import apis


def code(key: int, version: int) -> int:
    return (key & 0xFFFF) << 16 | version & 0xFFFF


def heartbeat(request: Any, ctx: Any) -> None: ...


def test_a_route_is_made_once_per_version() -> None:
    dispatch = Dispatch(apis(heartbeat=heartbeat))
    route = dispatch.find(code(12, 3))
    assert route is not None
    assert (route.name, route.version, route.handle) == ("Heartbeat", 3, heartbeat)
    assert dispatch.find(code(12, 3)) is route
    assert dispatch.find(code(12, 4)) is not route


@pytest.mark.parametrize(
    ("key", "version", "flexible_request", "flexible_response"),
    [(12, 3, False, False), (12, 4, True, True), (18, 2, False, False), (18, 3, True, False)],
)
def test_header_formats_follow_the_version_except_for_api_versions(
    key: int, version: int, flexible_request: bool, flexible_response: bool
) -> None:
    route = Dispatch(apis(heartbeat=heartbeat)).find(code(key, version))
    assert route is not None
    assert (route.flexible_request, route.flexible_response) == (flexible_request, flexible_response)


def test_answers_that_carry_records_may_be_large() -> None:
    assert {API_NAMES[key] for key in API_NAMES if has_records(response_type(key))} == {
        "Fetch",
        "FetchSnapshot",
        "ShareFetch",
    }


def test_every_other_api_key_is_refused() -> None:
    dispatch = Dispatch(apis(heartbeat=heartbeat))
    served = []
    for key in range(-32768, 32768):
        with suppress(ProtocolError):
            dispatch.find(code(key, 0))
            served.append(key)
    assert served == [12, 18]
    with pytest.raises(ProtocolError, match="api key -7 which is not served"):
        dispatch.find(code(-7, 0))


@pytest.mark.parametrize("version", [-32768, -1, 5, 32767])
def test_versions_that_are_not_served_are_refused(version: int) -> None:
    with pytest.raises(ProtocolError, match=rf"Heartbeat with version {version} .* \(versions 0-4 are\)"):
        Dispatch(apis(heartbeat=heartbeat)).find(code(12, version))


@pytest.mark.parametrize("version", [-32768, -1, 5, 32767])
def test_an_api_versions_that_is_not_served_is_left_to_the_connection(version: int) -> None:
    assert Dispatch(apis()).find(code(18, version)) is None
