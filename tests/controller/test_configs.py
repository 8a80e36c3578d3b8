"""Dynamic configs: single changes, replacement, and what is refused, in the words of Apache Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.configs import refused_by_broker
from pykafka_broker.controller.core.events import (
    AlterConfigs,
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    CreateTopics,
    EventError,
    IncrementalAlterConfigs,
    NewConfigs,
    NewTopic,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import a_cluster, decide, uuid

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


class ListsOfPolicies:
    """One list key, with a default."""

    def validate(
        self, resource_type: ResourceType, name: str, new: Mapping[str, str], old: Mapping[str, str]
    ) -> None:
        pass

    def is_list(self, resource_type: ResourceType, key: str) -> bool:
        return key == "cleanup.policy"

    def default(self, resource_type: ResourceType, key: str) -> str | None:
        return "delete" if key == "cleanup.policy" else None

    def static(self, key: str) -> str | None:
        return None


def with_orders(**configs: str) -> ControllerState:
    state = a_cluster(1, configs=ListsOfPolicies())
    topic = NewTopic("orders", uuid(100), configs=tuple(configs.items()))
    return decide(state, CreateTopics((topic,)))[0]


def alter(
    state: ControllerState,
    *changes: tuple[str, int, str | None],
    resource: tuple[int, str] = (TOPIC, "orders"),
    validate_only: bool = False,
) -> tuple[Mapping[str, str], tuple[Any, ...], Any]:
    state, records, results = decide(
        state, IncrementalAlterConfigs((ConfigChange(*resource, changes),), validate_only)
    )
    return state.image.config(*resource), records, results


def config(
    name: str, value: str | None, resource_type: int = TOPIC, resource_name: str = "orders"
) -> m.ConfigRecord:
    return m.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)


def test_single_keys_are_set_and_deleted_and_the_others_stay() -> None:
    state = with_orders(a="1", b="2")
    values, records, results = alter(state, ("b", DELETE, None), ("c", SET, "3"))
    assert records == (config("b", None), config("c", "3"))
    assert (values, results) == ({"a": "1", "c": "3"}, (AlterConfigsResult(TOPIC, "orders"),))


def test_lists_grow_and_shrink_from_what_is_in_force() -> None:
    state = with_orders()
    values, _, _ = alter(state, ("cleanup.policy", APPEND, "compact,delete"))
    assert values == {"cleanup.policy": "delete,compact"}
    values, _, _ = alter(state, ("cleanup.policy", SUBTRACT, "delete"))
    assert values == {"cleanup.policy": ""}


def test_a_value_that_does_not_change_is_not_recorded_except_for_a_broker() -> None:
    assert alter(with_orders(a="1"), ("a", SET, "1"))[1] == ()
    broker = (BROKER, "1")
    state, _, _ = decide(a_cluster(1), IncrementalAlterConfigs((ConfigChange(*broker, (("a", SET, "1"),)),)))
    # A broker reads its key store again when its path is set to what it was.
    assert alter(state, ("a", SET, "1"), resource=broker)[1] == (config("a", "1", BROKER, "1"),)


def test_one_bad_key_spoils_its_resource_and_no_other() -> None:
    state = with_orders()
    bad = ConfigChange(TOPIC, "orders", (("a", SET, "1"), ("a.number", APPEND, "2")))
    good = ConfigChange(BROKER, "", (("b", SET, "1"),))

    state, records, results = decide(state, IncrementalAlterConfigs((bad, good)))

    assert records == (config("b", "1", BROKER, ""),)
    message = "Can't APPEND to key a.number because its type is not LIST."
    assert results == (
        AlterConfigsResult(TOPIC, "orders", ErrorCode.INVALID_CONFIG, message),
        AlterConfigsResult(BROKER, ""),
    )


def test_replacing_drops_what_is_not_named() -> None:
    state = with_orders(a="1", b="2")
    state, records, _ = decide(state, AlterConfigs((NewConfigs(TOPIC, "orders", (("b", "3"),)),)))
    assert records == (config("b", "3"), config("a", None))
    assert state.image.config(TOPIC, "orders") == {"b": "3"}


def test_validate_only_changes_nothing() -> None:
    state = with_orders()
    values, records, results = alter(state, ("a", SET, "1"), validate_only=True)
    assert (values, records, results) == ({}, (), (AlterConfigsResult(TOPIC, "orders"),))


@pytest.mark.parametrize(
    "resource, error, message",
    [
        ((TOPIC, "nope"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        ((TOPIC, ""), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        ((ResourceType.GROUP, ""), ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        ((BROKER, "x"), ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ((BROKER, "--1"), ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ((BROKER, "1_0"), ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ((BROKER, "9" * 10), ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ((BROKER, "+7"), ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id +7 found."),
        ((BROKER, "-2"), ErrorCode.INVALID_REQUEST, "Invalid negative broker ID."),
        ((BROKER, "7"), ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 7 found."),
        ((3, "x"), ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 3."),
    ],
)
def test_resources_that_cannot_have_configs_are_refused(
    resource: tuple[int, str], error: ErrorCode, message: str
) -> None:
    _, records, results = alter(with_orders(), ("a", SET, "1"), resource=resource)
    assert (records, results) == ((), (AlterConfigsResult(*resource, error, message),))


def test_groups_and_client_metrics_need_not_exist() -> None:
    for kind in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        values, _, _ = alter(with_orders(), ("a", SET, "1"), resource=(kind, "new"))
        assert values == {"a": "1"}


def test_a_resource_named_twice_is_refused() -> None:
    change = ConfigChange(TOPIC, "orders", (("a", SET, "1"),))
    _, records, results = decide(with_orders(), IncrementalAlterConfigs((change, change)))
    duplicate = AlterConfigsResult(TOPIC, "orders", ErrorCode.INVALID_REQUEST, "Duplicate resource.")
    assert (records, results) == ((), (duplicate,))


def test_a_value_has_a_limit() -> None:
    _, records, [result] = alter(with_orders(), ("a", SET, "x" * 32_768))
    assert (records, result.error) == ((), ErrorCode.INVALID_CONFIG)


def test_with_eligible_leader_replicas_all_brokers_share_one_min_insync_replicas() -> None:
    state = with_orders()
    _, _, [result] = alter(state, ("min.insync.replicas", SET, "2"), resource=(BROKER, "1"))
    assert result.message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    _, _, [result] = alter(state, ("min.insync.replicas", DELETE, None), resource=(BROKER, ""))
    assert result.message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."


def test_a_new_min_insync_replicas_makes_eligibility_void() -> None:
    _, records, _ = alter(with_orders(), ("min.insync.replicas", SET, "2"))
    assert records[1:] == (m.ClearElrRecord(topic_name="orders"),)
    _, records, _ = alter(with_orders(), ("min.insync.replicas", SET, "2"), resource=(BROKER, ""))
    assert records[1:] == (m.ClearElrRecord(topic_name=""),)


def test_a_request_of_too_many_changes_is_refused_as_a_whole() -> None:
    """Before, it became several batches of the metadata log, of which a change of leader could keep some."""
    values = [(f"key{number}", "1") for number in range(10_001)]
    changes = ConfigChange(TOPIC, "orders", tuple((key, SET, value) for key, value in values))
    refused = EventError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")

    for event in (
        IncrementalAlterConfigs((changes,)),
        AlterConfigs((NewConfigs(TOPIC, "orders", tuple(values)),)),
    ):
        _, records, result = decide(with_orders(), event)
        assert (records, result) == ((), refused)


@pytest.mark.parametrize(
    "resource, message",
    [
        (
            ConfigChange(TOPIC, "t", (("a", SET, "1"), ("a", SET, "2"))),
            "Error due to duplicate config keys",
        ),
        (ConfigChange(TOPIC, "t", (("a", SET, None),)), "Null value not supported for : a"),
        (NewConfigs(TOPIC, "t", (("a", None), ("b", None))), "Null value not supported for : a, b"),
        (NewConfigs(ResourceType.BROKER_LOGGER, "1", ()), "Unknown resource type 8"),
        (ConfigChange(BROKER, "x", ()), "Node id must be an integer, but it is: x"),
        (ConfigChange(BROKER, "2", ()), "Unexpected broker id, expected 1, but received 2"),
    ],
)
def test_a_broker_refuses_by_itself_what_it_need_not_ask_about(
    resource: ConfigChange | NewConfigs, message: str
) -> None:
    assert refused_by_broker(resource, 1) == (ErrorCode.INVALID_REQUEST, message)


def test_a_broker_passes_on_its_own_and_the_clusters_configs() -> None:
    for name in ("", "1"):
        assert refused_by_broker(ConfigChange(BROKER, name, (("a", DELETE, None),)), 1) is None
