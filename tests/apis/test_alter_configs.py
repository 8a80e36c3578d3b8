"""AlterConfigs (33): all that is set on a resource is replaced."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.alter_configs import alter_configs
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every
from tests.support.controllers import register

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
DONE = [(0, None)]


def resource(kind: int, name: str, **configs: str | None) -> AlterConfigsResource:
    replaced = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=replaced)


async def altered(
    user: User, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = await user.send(request, version)
    return [(result.error_code, result.error_message) for result in answer.responses]


@pytest.mark.parametrize("version", every(alter_configs))
async def test_what_is_not_named_goes_back_to_its_default(user: User, version: int) -> None:
    await user.create_topic("t", retention_ms="1", segment_ms="2")

    assert await altered(user, resource(TOPIC, "t", segment_ms="3"), version=version) == DONE

    assert await user.config(TOPIC, "t", "segment.ms") == "3"
    assert await user.config(TOPIC, "t", "retention.ms") == "604800000"


async def test_a_broker_is_altered_too(user: User) -> None:
    assert await altered(user, resource(BROKER, "1", log_retention_ms="5")) == DONE
    assert await user.config(BROKER, "1", "log.retention.ms") == "5"
    assert await altered(user, resource(BROKER, "1")) == DONE
    assert await user.config(BROKER, "1", "log.retention.ms") is None


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (
            resource(TOPIC, "t", retention_ms="soon"),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            resource(TOPIC, "t", retention_ms=None),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            resource(TOPIC, "missing"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'missing' does not exist.",
        ),
        (resource(64, "t"), ErrorCode.INVALID_REQUEST, "Unknown resource type 64"),
    ],
    ids=["value", "null", "unknown topic", "unknown type"],
)
@pytest.mark.parametrize("version", ends(alter_configs))
async def test_what_cannot_be_is_refused_and_changes_nothing(
    user: User, version: int, wanted: AlterConfigsResource, error: ErrorCode, message: str
) -> None:
    await user.create_topic("t", segment_ms="2")

    assert await altered(user, wanted, version=version) == [(error, message)]
    assert await user.config(TOPIC, "t", "segment.ms") == "2"


async def test_a_resource_named_twice_is_answered_and_left_alone(user: User) -> None:
    """Apache Kafka never answers this one."""
    await user.create_topic("t", segment_ms="2")

    got = await altered(user, resource(TOPIC, "t"), resource(TOPIC, "t"))

    assert {error for error, _ in got} == {int(ErrorCode.INVALID_REQUEST)}
    assert await user.config(TOPIC, "t", "segment.ms") == "2"


async def test_validating_only_changes_nothing(user: User) -> None:
    await user.create_topic("t", segment_ms="2")

    assert await altered(user, resource(TOPIC, "t"), validate_only=True) == DONE
    assert await user.config(TOPIC, "t", "segment.ms") == "2"


async def test_loggers_are_only_altered_one_by_one(user: User) -> None:
    [(error, _)] = await altered(user, resource(LOGGER, "1", root="INFO"))

    assert error == ErrorCode.INVALID_REQUEST


async def test_wrong_values_of_all_brokers_are_seen_before_what_cannot_be_removed(user: User) -> None:
    """`min.insync.replicas` of the whole cluster has to stay while replicas may be eligible leaders."""
    wrong = await altered(user, resource(BROKER, "", log_cleaner_threads="many"))
    [(kept, why)] = await altered(user, resource(BROKER, "", log_cleaner_threads="1"))

    text = "Invalid value many for configuration log.cleaner.threads: Not a number of type INT"
    assert wrong == [(ErrorCode.INVALID_REQUEST, text)]
    assert kept == ErrorCode.INVALID_CONFIG
    assert why == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."


async def test_a_listener_of_controllers_asks_the_controller_at_once(
    combined: Home, controllers: User
) -> None:
    """It has none of the checks of a broker: any known broker may be named."""
    await register(controllers, combined)
    known, unknown = (resource(BROKER, name, log_retention_ms="5") for name in ("2", "3"))

    assert await altered(controllers, known, unknown, resource(9, "x"), resource(LOGGER, "1")) == [
        (ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."),
        *DONE,
        (ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 3 found."),
        (ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 9."),
    ]

    assert combined.broker.node.image.config(ResourceType.BROKER, "2") == {"log.retention.ms": "5"}
