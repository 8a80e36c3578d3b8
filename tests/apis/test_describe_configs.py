"""DescribeConfigs (32): every key of a resource, what it is set to, and by whom."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykafka_broker.apis.describe_configs import describe_configs
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.broker import BROKER
from pykafka_broker.config.describe import ConfigSource
from pykafka_broker.config.topic import TOPIC as TOPIC_TABLE
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsSynonym,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every

TOPIC, BROKER_TYPE, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP


async def described(
    user: User, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **details: Any
) -> Any:
    """The answer about one resource."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], **details)
    [result] = (await user.send(request, version)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


async def entries(user: User, kind: int, name: str, **details: Any) -> dict[str, Any]:
    result = await described(user, kind, name, **details)
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", every(describe_configs))
async def test_every_key_of_a_topic_is_listed_with_value_and_source(user: User, version: int) -> None:
    await user.create_topic("t", retention_ms="1234")

    shown = await entries(user, TOPIC, "t", version=version)

    assert set(shown) == {name for name, key in TOPIC_TABLE.items() if not key.internal}
    assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("1234", ConfigSource.TOPIC)
    segment = shown["segment.bytes"]
    assert (segment.value, segment.config_source) == ("1073741824", ConfigSource.DEFAULT)
    assert {entry.read_only for entry in shown.values()} == {False}


@pytest.mark.parametrize("version", every(describe_configs))
async def test_every_key_of_a_broker_is_listed_and_secrets_are_not_told(home: Home, version: int) -> None:
    home.overrides["ssl.key.password"] = "secret"
    async with home.running() as user:
        shown = await entries(user, BROKER_TYPE, "1", version=version)

        assert {name for name, key in BROKER.items() if not key.internal} <= set(shown)
        password = shown["ssl.key.password"]
        assert (password.is_sensitive, password.value) == (True, None)
        assert (shown["node.id"].value, shown["node.id"].read_only) == ("1", True)
        assert shown["log.retention.ms"].read_only is False


async def test_synonyms_tell_what_would_count_next(user: User) -> None:
    await user.create_topic("t", retention_ms="1")
    await user.alter_broker(log_retention_ms="2")
    await user.alter_broker(1, log_retention_ms="3")

    shown = await entries(user, TOPIC, "t", keys=["retention.ms"], include_synonyms=True)

    assert shown["retention.ms"].synonyms == [
        DescribeConfigsSynonym(name="retention.ms", value="1", source=ConfigSource.TOPIC),
        DescribeConfigsSynonym(name="log.retention.ms", value="3", source=ConfigSource.DYNAMIC_BROKER),
        DescribeConfigsSynonym(
            name="log.retention.ms", value="2", source=ConfigSource.DYNAMIC_DEFAULT_BROKER
        ),
        DescribeConfigsSynonym(name="log.retention.hours", value="168", source=ConfigSource.DEFAULT),
    ]


async def test_synonyms_and_documentation_are_for_those_who_ask(user: User) -> None:
    await user.create_topic("t", retention_ms="1")
    asked = {"include_synonyms": True, "include_documentation": True}

    [plain] = (await entries(user, TOPIC, "t", keys=["retention.ms"])).values()
    [full] = (await entries(user, TOPIC, "t", keys=["retention.ms"], **asked)).values()

    assert (plain.synonyms, plain.documentation) == ([], None)
    assert full.synonyms
    assert full.documentation


async def test_only_the_keys_asked_for_are_shown_and_unknown_ones_left_out(user: User) -> None:
    await user.create_topic("t")

    some = await entries(user, TOPIC, "t", keys=["segment.bytes", "no.such.key"])
    none_named = await entries(user, TOPIC, "t", keys=[])

    assert set(some) == {"segment.bytes"}
    assert len(none_named) > 30, "an empty list of keys means all"


async def test_the_keys_come_in_the_order_of_apache_kafka_whatever_the_order_in_which_they_are_asked_for(
    user: User,
) -> None:
    await user.create_topic("t")
    asked = ["cleanup.policy", "compression.type", "max.message.bytes", "retention.ms", "segment.bytes"]

    told = list(await entries(user, TOPIC, "t", keys=asked))

    assert told == [
        "compression.type",
        "cleanup.policy",
        "segment.bytes",
        "retention.ms",
        "max.message.bytes",
    ]


async def test_loggers_come_in_the_order_of_a_hash_map(user: User) -> None:
    told = list(await entries(user, LOGGER, "1"))

    assert told == walked(told, string_hash)
    assert told != sorted(told)


async def test_min_insync_replicas_is_a_dynamic_default_because_elr_set_it_at_format_time(
    user: User,
) -> None:
    await user.create_topic("t")

    [entry] = (await entries(user, TOPIC, "t", keys=["min.insync.replicas"])).values()

    assert (entry.value, entry.config_source) == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert list(await entries(user, BROKER_TYPE, "")) == ["min.insync.replicas"]


@pytest.mark.parametrize("version", ends(describe_configs))
@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "two words", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER_TYPE, "2", ErrorCode.INVALID_REQUEST),
        (BROKER_TYPE, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (3, "what", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_does_not_exist_has_no_configs(
    user: User, version: int, kind: int, name: str, error: ErrorCode
) -> None:
    result = await described(user, kind, name, version=version)

    assert (result.error_code, result.configs) == (error, [])


async def test_one_resources_failure_does_not_touch_the_others(user: User) -> None:
    await user.create_topic("t")
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=["segment.ms"])
        for name in ("missing", "t")
    ]

    answer = await user.send(DescribeConfigsRequest(resources=resources), 4)

    assert [(r.error_code, len(r.configs)) for r in answer.results] == [(3, 0), (0, 1)]


async def test_groups_and_client_metrics_have_configs_whether_or_not_they_exist(user: User) -> None:
    group = await entries(user, GROUP, "any")
    metrics = await entries(user, METRICS, "any")

    assert group["consumer.session.timeout.ms"].value == "45000"
    assert set(metrics) == {"interval.ms", "match", "metrics"}


async def test_loggers_are_shown_with_their_levels(user: User) -> None:
    logging.getLogger("kafka.tests.shown").setLevel(logging.ERROR)

    shown = await entries(user, LOGGER, "1")

    assert shown["kafka.tests.shown"].value == "ERROR"
    assert shown["root"].config_source == ConfigSource.DYNAMIC_BROKER_LOGGER
