"""IncrementalAlterConfigs (44): single keys are set, deleted, appended to and subtracted from."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pykafka_broker.apis.incremental_alter_configs import incremental_alter_configs
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every
from tests.support.controllers import register

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
GROUP = ResourceType.GROUP
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> AlterConfigsResource:
    configs = [AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in changes]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def altered(
    user: User, *resources: AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Error and message of each resource."""
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = await user.send(request, version)
    return [(result.error_code, result.error_message) for result in answer.responses]


DONE = [(0, None)]


@pytest.mark.parametrize("version", every(incremental_alter_configs))
async def test_only_the_keys_named_are_changed(user: User, version: int) -> None:
    await user.create_topic("t", segment_ms="9")

    assert await altered(user, resource(TOPIC, "t", ("retention.ms", SET, "5")), version=version) == DONE
    assert await user.config(TOPIC, "t", "retention.ms") == "5"
    assert await user.config(TOPIC, "t", "segment.ms") == "9"

    assert await altered(user, resource(TOPIC, "t", ("retention.ms", DELETE, None)), version=version) == DONE
    assert await user.config(TOPIC, "t", "retention.ms") == "604800000"


async def test_a_key_that_is_not_set_can_be_deleted_and_may_be_unknown(user: User) -> None:
    """As in Apache Kafka, whose controller looks at the values that are left."""
    await user.create_topic("t")
    for key in ("retention.ms", "no.such", ""):
        assert await altered(user, resource(TOPIC, "t", (key, DELETE, None))) == DONE


async def test_lists_are_appended_to_and_subtracted_from(user: User) -> None:
    await user.create_topic("t")
    policy = "cleanup.policy"

    async def after(operation: int, value: str) -> str | None:
        assert await altered(user, resource(TOPIC, "t", (policy, operation, value))) == DONE
        return await user.config(TOPIC, "t", policy)

    assert await after(APPEND, "compact") == "delete,compact"
    assert await after(APPEND, "compact") == "delete,compact"
    assert await after(SUBTRACT, "delete") == "compact"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            [("retention.ms", APPEND, "5")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        ([("no.such", SET, "5")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            [("retention.ms", SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        ([("retention.ms", 7, "5")], ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (
            [("segment.ms", SET, "9"), ("retention.ms", SET, "soon")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
    ],
    ids=["no list", "unknown key", "null", "key twice", "unknown operation", "bad value"],
)
@pytest.mark.parametrize("version", ends(incremental_alter_configs))
async def test_one_bad_key_spoils_its_whole_resource(
    user: User, version: int, changes: list[Change], error: ErrorCode, message: str | None
) -> None:
    await user.create_topic("t", segment_ms="1")

    assert await altered(user, resource(TOPIC, "t", *changes), version=version) == [(error, message)]
    assert await user.config(TOPIC, "t", "segment.ms") == "1"


async def test_each_resource_succeeds_or_fails_on_its_own(user: User) -> None:
    await user.create_topic("t")
    change = ("retention.ms", SET, "5")

    got = await altered(
        user,
        resource(TOPIC, "missing", change),
        resource(TOPIC, "t", change),
        resource(TOPIC, "two words", change),
    )

    assert [error for error, _ in got] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


async def test_a_resource_named_twice_is_left_alone(user: User) -> None:
    await user.create_topic("t")

    got = await altered(user, resource(TOPIC, "t", ("retention.ms", SET, "5")), resource(TOPIC, "t"))

    assert set(got) == {(int(ErrorCode.INVALID_REQUEST), "Each resource must appear at most once.")}
    assert await user.config(TOPIC, "t", "retention.ms") == "604800000"


async def test_validating_only_changes_nothing(user: User) -> None:
    await user.create_topic("t")

    good = await altered(user, resource(TOPIC, "t", ("retention.ms", SET, "5")), validate_only=True)
    [(bad, _)] = await altered(user, resource(TOPIC, "t", ("no.such", SET, "5")), validate_only=True)

    assert (good, bad) == (DONE, ErrorCode.INVALID_CONFIG)
    assert await user.config(TOPIC, "t", "retention.ms") == "604800000"


async def test_a_changed_topic_config_is_obeyed_at_once(user: User) -> None:
    await user.create_topic("t")
    await altered(user, resource(TOPIC, "t", ("max.message.bytes", SET, "100")))

    assert (await user.try_to_produce("t", b"x" * 100)).error_code == ErrorCode.MESSAGE_TOO_LARGE


# --- brokers ------------------------------------------------------------------------------------------


async def test_a_brokers_own_value_counts_before_that_of_all_brokers(user: User) -> None:
    key = "log.retention.ms"

    assert await altered(user, resource(BROKER, "", (key, SET, "7"))) == DONE
    assert await user.config(BROKER, "1", key) == "7"
    assert await altered(user, resource(BROKER, "1", (key, SET, "8"))) == DONE
    assert await user.config(BROKER, "1", key) == "8"
    assert await altered(user, resource(BROKER, "1", (key, DELETE, None))) == DONE
    assert await user.config(BROKER, "1", key) == "7"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("1", ("node.id", SET, "2"), "Cannot update these configs dynamically: [node.id]"),
        ("2", ("log.retention.ms", SET, "2"), "Unexpected broker id, expected 1, but received 2"),
        ("one", ("log.retention.ms", SET, "2"), "Node id must be an integer, but it is: one"),
    ],
)
async def test_what_a_broker_cannot_change_while_it_runs_is_refused(
    user: User, name: str, change: Change, message: str
) -> None:
    [(error, said)] = await altered(user, resource(BROKER, name, change))

    assert error == ErrorCode.INVALID_REQUEST
    assert said is not None
    assert message in said


async def test_changes_outlive_a_restart(home: Home) -> None:
    async with home.running() as user:
        await altered(user, resource(BROKER, "1", ("log.retention.ms", SET, "8")))
    async with home.running() as user:
        assert await user.config(BROKER, "1", "log.retention.ms") == "8"


async def test_groups_have_configs_within_the_brokers_bounds(user: User) -> None:
    key = "consumer.session.timeout.ms"

    assert await altered(user, resource(GROUP, "g", (key, SET, "50000"))) == DONE
    assert await user.config(GROUP, "g", key) == "50000"
    [(error, _)] = await altered(user, resource(GROUP, "g", (key, SET, "1")))
    assert error == ErrorCode.INVALID_CONFIG


# --- loggers ------------------------------------------------------------------------------------------

LOGGER_NAME = "kafka.tests.altered"


@pytest.fixture
def a_logger() -> Iterator[logging.Logger]:
    found = logging.getLogger(LOGGER_NAME)
    yield found
    found.setLevel(logging.NOTSET)


async def test_a_loggers_level_is_set_and_unset_while_the_broker_runs(
    user: User, a_logger: logging.Logger
) -> None:
    assert await altered(user, resource(LOGGER, "1", (LOGGER_NAME, SET, "WARN"))) == DONE
    assert a_logger.level == logging.WARNING
    assert await altered(user, resource(LOGGER, "1", (LOGGER_NAME, DELETE, None))) == DONE
    assert a_logger.level == logging.NOTSET


async def test_validating_a_logger_only_leaves_its_level(user: User, a_logger: logging.Logger) -> None:
    change = resource(LOGGER, "1", (LOGGER_NAME, SET, "ERROR"))

    assert await altered(user, change, validate_only=True) == DONE
    assert a_logger.level == logging.NOTSET


LEVELS = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("1", ("no.such.logger", SET, "INFO"), 40, "Logger no.such.logger does not exist!"),
        (
            "1",
            ("root", SET, "LOUD"),
            40,
            f"Cannot set the log level of root to LOUD as it is not a supported log level. {LEVELS}",
        ),
        ("1", ("root", DELETE, None), 42, "Removing the log level of the root logger is not allowed"),
        ("1", ("root", APPEND, "x"), 42, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ("1", ("root", SET, None), 42, "Null value not supported for : root"),
        ("2", ("root", SET, "INFO"), 42, "Unexpected node id. Expected 1, but received 2"),
        ("one", ("root", SET, "INFO"), 42, "Node id must be an integer, but it is: one"),
    ],
)
async def test_a_level_that_cannot_be_set_is_refused_with_the_reason(
    user: User, name: str, change: Change, error: int, message: str
) -> None:
    root = logging.getLogger().level

    assert await altered(user, resource(LOGGER, name, change)) == [(error, message)]
    assert logging.getLogger().level == root


async def test_loggers_and_what_is_kept_are_changed_in_one_request(
    user: User, a_logger: logging.Logger
) -> None:
    await user.create_topic("t")

    got = await altered(
        user,
        resource(TOPIC, "t", ("retention.ms", SET, "5")),
        resource(LOGGER, "1", (LOGGER_NAME, SET, "ERROR")),
    )

    assert got == DONE * 2
    assert await user.config(TOPIC, "t", "retention.ms") == "5"
    assert a_logger.level == logging.ERROR


async def test_a_logger_named_twice_is_left_alone(user: User, a_logger: logging.Logger) -> None:
    change: Any = resource(LOGGER, "1", (LOGGER_NAME, SET, "ERROR"))

    got = await altered(user, change, change)

    assert got == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert a_logger.level == logging.NOTSET


async def test_very_many_nodes_whose_loggers_are_altered_cost_as_much_as_they_are_many(user: User) -> None:
    """Counting each name among all others, before any ACL was asked, held the event loop for minutes."""
    began = time.process_time()

    got = await altered(user, *[resource(LOGGER, f"node {number}") for number in range(15_000)])

    assert time.process_time() - began < 4
    assert {error for error, _ in got} == {ErrorCode.INVALID_REQUEST}


async def test_a_listener_of_controllers_asks_the_controller_at_once(
    combined: Home, controllers: User
) -> None:
    """It has none of the checks of a broker: any known broker may be named; the last change counts."""
    await register(controllers, combined)
    cluster_wide = resource(BROKER, "", ("log.retention.ms", SET, "7"))
    two = resource(BROKER, "2", ("log.retention.ms", SET, "5"), ("log.retention.ms", SET, "6"))

    assert await altered(controllers, two, cluster_wide) == [*DONE, *DONE]

    assert combined.broker.node.image.config(ResourceType.BROKER, "2") == {"log.retention.ms": "6"}
    assert combined.broker.node.image.config(ResourceType.BROKER, "")["log.retention.ms"] == "7"


async def test_loggers_of_the_node_are_altered_over_a_listener_of_controllers(controllers: User) -> None:
    unknown = resource(LOGGER, "1", ("no.such.logger", SET, "INFO"))
    elsewhere = resource(LOGGER, "2", ("root", SET, "INFO"))

    assert await altered(controllers, unknown, elsewhere) == [
        (ErrorCode.INVALID_CONFIG, "Logger no.such.logger does not exist!"),
        (ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
    ]
