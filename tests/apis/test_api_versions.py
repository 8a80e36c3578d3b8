"""ApiVersions (18): what is served, and how a client of any age can find out."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api_versions import api_versions
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.testing.user import User
from tests.apis.asking import every

ASKING = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")


@pytest.mark.parametrize("version", every(api_versions))
async def test_every_served_api_is_listed_in_key_order_but_those_of_a_receiver_that_is_off(
    user: User, version: int
) -> None:
    answer = await user.send(ASKING, version)

    assert answer.error_code == 0
    assert answer.api_keys == [
        ApiVersion(api_key=api.key, min_version=api.advertised_min_version, max_version=api.max_version)
        for api in APIS
        if api.name not in ("GetTelemetrySubscriptions", "PushTelemetry")
    ]


async def test_produce_is_listed_from_version_0_because_a_librdkafka_release_looks_for_it(user: User) -> None:
    answer = await user.send(ASKING, 4)

    assert answer.api_keys[0] == ApiVersion(api_key=0, min_version=0, max_version=13)


def test_an_api_is_served_at_all_versions_that_apache_kafka_serves_or_not_at_all() -> None:
    for api in APIS:
        declared = schema_of(api.request)
        served = (api.min_version, api.max_version)
        assert served == (declared.served_versions[0], declared.served_versions[-1]), api.name
        assert "broker" in declared.listeners, api.name


async def test_only_from_version_4_on_are_features_shown_whose_minimum_is_0(user: User) -> None:
    shown = {
        version: [feature.name for feature in (await user.send(ASKING, version)).supported_features]
        for version in (2, 3, 4)
    }

    assert shown[2] == []
    assert shown[3] == ["metadata.version"]
    assert {"metadata.version", "group.version", "kraft.version", "transaction.version"} <= set(shown[4])


async def test_only_features_that_really_work_are_finalized(user: User) -> None:
    answer = await user.send(ASKING, 4)

    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalized == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert answer.finalized_features_epoch > 0


@pytest.mark.parametrize("name", ["", "-dash", "dot.", "two words", "under_score", "é"])
@pytest.mark.parametrize("version", [3, 4])
async def test_a_client_must_say_who_it_is_in_plain_words(user: User, version: int, name: str) -> None:
    for given in ({"client_software_name": name}, {"client_software_version": name}):
        fields: dict[str, Any] = {"client_software_name": "a", "client_software_version": "1", **given}
        answer = await user.send(ApiVersionsRequest(**fields), version)
        assert answer == ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])


async def test_names_with_dots_and_dashes_inside_are_fine(user: User) -> None:
    request = ApiVersionsRequest(
        client_software_name="apache-kafka.java", client_software_version="4.3.1-rc.1"
    )

    assert (await user.send(request, 3)).error_code == 0


@pytest.mark.parametrize("version", [5, 99, -1])
async def test_a_version_that_is_not_served_gets_the_oldest_answer_and_the_connection_lives(
    user: User, version: int
) -> None:
    code = version & 0xFFFF
    header = b"\x00\x12" + code.to_bytes(2, "big") + b"\x00\x00\x00\x07" + b"\xff\xff"
    user.write_bytes(len(header).to_bytes(4, "big") + header)

    frame = await user.read_frame()

    assert frame[:4] == b"\x00\x00\x00\x07"
    answer, end = decode(ApiVersionsResponse, 0, frame, 4)
    own = ApiVersion(api_key=18, min_version=0, max_version=4)
    assert answer == ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    assert end == len(frame)
    assert (await user.send(ASKING, 4)).error_code == 0
