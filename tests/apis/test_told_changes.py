"""The log of the controller names the client that has asked for a change, whichever API it used."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykafka_broker.protocol.messages import alter_configs as replacing
from pykafka_broker.protocol.messages import incremental_alter_configs as altering
from pykafka_broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis import delegation_tokens as tokens
from tests.apis.quotas import setting
from tests.apis.test_envelope import creation, wrapped
from tests.support.scram import altering as altering_users
from tests.support.scram import put

TOPIC = 2


def configs(value: str) -> altering.IncrementalAlterConfigsRequest:
    change = altering.AlterableConfig(name="retention.ms", config_operation=0, value=value)
    resource = altering.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[change])
    return altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


def all_configs(value: str) -> replacing.AlterConfigsRequest:
    config = replacing.AlterableConfig(name="retention.ms", value=value)
    resource = replacing.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[config])
    return replacing.AlterConfigsRequest(resources=[resource], validate_only=False)


#: Each request with its version, and how the line begins.
CHANGES: list[tuple[Any, int, str]] = [
    (creation("orders"), 7, "Created topic orders (partitions: 1, replication factor: 1)"),
    (
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)],
            timeout_ms=1_000,
            validate_only=False,
        ),
        3,
        "Created partition orders-1 on 1",
    ),
    (configs("5"), 1, "Set configuration retention.ms of topic orders to 5"),
    (all_configs("6"), 2, "Set configuration retention.ms of topic orders to 6"),
    (
        AlterClientQuotasRequest(
            entries=[setting({"user": "bob"}, producer_byte_rate=9.0)], validate_only=False
        ),
        1,
        "Set quota producer_byte_rate of user bob to 9",
    ),
    (altering_users(put("bob")), 0, "Created SCRAM credential SCRAM-SHA-256 of user bob"),
    (tokens.creation(), 3, "Created delegation token "),
    (
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)]
        ),
        1,
        "Set feature share.version from 1 to 0",
    ),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="orders", topic_id=bytes(16))], timeout_ms=1_000),
        6,
        "Deleted topic orders",
    ),
    (UnregisterBrokerRequest(broker_id=1), 0, "Unregistered broker 1"),
]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [r.getMessage() for r in caplog.records if r.name.startswith("org.apache.kafka.controller.")]
    caplog.clear()
    return [text for text in found if "Becoming the active controller" not in text]


async def test_each_change_is_told_with_the_user_and_the_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with tokens.a_broker() as home, tokens.signed_in(home) as alice:
        told(caplog)
        for request, version, begins in CHANGES:
            await alice.send(request, version)
            line, *more = told(caplog)
            assert line.startswith(f"[QuorumController id=1] {begins}"), line
            assert all(text.endswith(", as User:alice at 127.0.0.1 asked.") for text in (line, *more))


async def test_of_a_request_that_a_broker_passes_on_its_client_is_told(
    combined: Home, controllers: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    address = bytes([10, 0, 0, 7])
    for request, version in ((creation("orders"), 7), (configs("5"), 1), (all_configs("6"), 2)):
        told(caplog)
        answer = await controllers.send(wrapped(request, version, client_host_address=address), 0)
        assert answer.error_code == 0
        [line] = told(caplog)
        assert line.endswith(", as User:alice at 10.0.0.7 asked.")
