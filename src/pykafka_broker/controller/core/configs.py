"""Dynamic configs: incremental changes (KIP-339) and the older replacement of all values of a resource.

`ControllerRules.configs` validates values; the rules here are the controller's own. `refused_by_broker` has
the checks of the broker that takes a request, before the request goes to the controller.
Loggers (BROKER_LOGGER) are not metadata: the broker changes them without the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pykafka_broker.cluster.broker_names import broker_id_of
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.controller.core.events import (
    AlterConfigs,
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    IncrementalAlterConfigs,
    NewConfigs,
)
from pykafka_broker.controller.core.state import (
    MIN_INSYNC_REPLICAS,
    ConfigRules,
    ControllerState,
    Decision,
    check_operation_size,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m

MAX_VALUE_LENGTH = 32_767

_ALTERABLE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)
_OPERATIONS = {int(operation): operation for operation in ConfigOperation}


def incremental_alter_configs(state: ControllerState, event: IncrementalAlterConfigs) -> Decision:
    """Set, delete, append to or subtract from single keys; one bad key fails its whole resource."""
    asked = [((r.resource_type, r.name), r.changes) for r in event.resources]
    return _alter(state, asked, incremental_records, validate_only=event.validate_only)


def alter_configs(state: ControllerState, event: AlterConfigs) -> Decision:
    """Replace all values of each resource."""
    asked = [((r.resource_type, r.name), r.configs) for r in event.resources]
    return _alter(state, asked, replacing_records, validate_only=event.validate_only)


def refused_by_broker(
    resource: ConfigChange | NewConfigs, node_id: int
) -> tuple[ErrorCode, str | None] | None:
    """The error if the broker `node_id` refuses a resource's changes itself, or None."""
    if malformed := why_malformed(resource):
        return malformed
    if resource.resource_type not in _ALTERABLE:
        return ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}"
    if resource.resource_type == ResourceType.BROKER and resource.name:
        broker_id = broker_id_of(resource.name)
        if broker_id is None:
            return ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource.name}"
        if broker_id != node_id:
            text = f"Unexpected broker id, expected {node_id}, but received {resource.name}"
            return ErrorCode.INVALID_REQUEST, text
    return None


def why_malformed(resource: ConfigChange | NewConfigs) -> tuple[ErrorCode, str | None] | None:
    """The error of a resource's changes by the checks that all types of resources share, or None."""
    if isinstance(resource, ConfigChange):
        keys = [key for key, _, _ in resource.changes]
        nulls = [
            key
            for key, operation, value in resource.changes
            if value is None and operation != ConfigOperation.DELETE
        ]
        unknown = any(operation not in _OPERATIONS for _, operation, _ in resource.changes)
    else:
        keys = [key for key, _ in resource.configs]
        nulls = [key for key, value in resource.configs if value is None]
        unknown = False
    if len(set(keys)) < len(keys):
        return ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys"
    if nulls:
        return ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
    if unknown:
        # Apache Kafka answers an unknown operation with this error and no text.
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return None


def incremental_records(
    state: ControllerState,
    resource_type: ResourceType,
    name: str,
    changes: Iterable[tuple[str, int, str | None]],
    *,
    newly_created: bool = False,
) -> list[object]:
    """The records that carry out `changes`, or KafkaError.

    A broker's value is written even if it does not change: users set the same path again to make a broker
    reload a renewed key store.
    """
    current = state.image.config(resource_type, name)
    records = []
    for key, number, value in changes:
        operation = _OPERATIONS.get(number)
        if operation is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {number}")
        old = current.get(key)
        new = _changed_value(state.rules.configs, resource_type, key, operation, old, value)
        if new != old or resource_type == ResourceType.BROKER:
            records.append(_config(resource_type, name, key, new))
    _check(state, resource_type, name, records, newly_created=newly_created)
    return list(records)


def replacing_records(
    state: ControllerState, resource_type: ResourceType, name: str, configs: Iterable[tuple[str, str | None]]
) -> list[object]:
    """The records that replace all values of the resource with `configs`, or KafkaError."""
    current = state.image.config(resource_type, name)
    wanted = dict(configs)
    records = [
        _config(resource_type, name, key, value)
        for key, value in wanted.items()
        if value != current.get(key) or resource_type == ResourceType.BROKER
    ]
    records += [_config(resource_type, name, key, None) for key in current if key not in wanted]
    _check(state, resource_type, name, records)
    return list(records)


def _alter(
    state: ControllerState,
    asked: Iterable[tuple[tuple[int, str], Any]],
    make_records: Callable[[ControllerState, ResourceType, str, Any], list[object]],
    *,
    validate_only: bool,
) -> Decision:
    by_resource: dict[tuple[int, str], Any] = {}
    duplicates = set()
    for resource, changes in asked:
        if resource in by_resource:
            duplicates.add(resource)
        by_resource[resource] = changes

    records: list[object] = []
    results = []
    for (kind, name), changes in by_resource.items():
        if (kind, name) in duplicates:
            results.append(AlterConfigsResult(kind, name, ErrorCode.INVALID_REQUEST, "Duplicate resource."))
            continue
        if kind not in _ALTERABLE:
            text = f"Unknown resource type {kind}."
            results.append(AlterConfigsResult(kind, name, ErrorCode.UNSUPPORTED_VERSION, text))
            continue
        try:
            records += make_records(state, ResourceType(kind), name, changes)
        except KafkaError as error:
            results.append(AlterConfigsResult(kind, name, error.code, error.message))
        else:
            results.append(AlterConfigsResult(kind, name))
    records += _clear_elr_records(state, records)
    check_operation_size(len(records))
    return Decision(() if validate_only else tuple(records), tuple(results))


def values_after(
    rules: ConfigRules, change: ConfigChange | NewConfigs, current: Mapping[str, str]
) -> dict[str, str]:
    """The values of a resource after a well-formed change; KafkaError if the change is invalid."""
    if isinstance(change, NewConfigs):
        return {key: value for key, value in change.configs if value is not None}
    values = dict(current)
    for key, number, value in change.changes:
        operation = _OPERATIONS[number]
        new = _changed_value(
            rules, ResourceType(change.resource_type), key, operation, values.get(key), value
        )
        if new is None:
            values.pop(key, None)
        else:
            values[key] = new
    return values


def _changed_value(
    rules: ConfigRules,
    resource_type: ResourceType,
    key: str,
    operation: ConfigOperation,
    old: str | None,
    value: str | None,
) -> str | None:
    if operation is ConfigOperation.SET:
        return value
    if operation is ConfigOperation.DELETE:
        return None
    if not rules.is_list(resource_type, key):
        text = f"Can't {operation.name} to key {key} because its type is not LIST."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    start = old if old is not None else rules.default(resource_type, key)
    items = [item for item in (start or "").split(",") if item]
    for item in (value or "").split(","):
        if operation is ConfigOperation.APPEND:
            if item not in items:
                items.append(item)
        elif item in items:
            items.remove(item)
    return ",".join(items)


def _check(
    state: ControllerState,
    resource_type: ResourceType,
    name: str,
    records: Iterable[m.ConfigRecord],
    *,
    newly_created: bool = False,
) -> None:
    """Validate the values that the resource would have after `records`.

    A broker's values are validated before the other checks: in Kafka the broker that takes the request
    validates them.
    """
    records = tuple(records)
    old = state.image.config(resource_type, name)
    new = dict(old)
    for record in records:
        if record.value is None:
            new.pop(record.name, None)
        else:
            new[record.name] = record.value
    if resource_type == ResourceType.BROKER:
        state.rules.configs.validate(resource_type, name, new, old)
    for record in records:
        _check_min_insync_replicas(state, record)
        if record.value is not None and len(record.value) > MAX_VALUE_LENGTH:
            text = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes."
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    _check_name(resource_type, name)
    if resource_type != ResourceType.BROKER:
        state.rules.configs.validate(resource_type, name, new, old)
    if not newly_created:
        _check_existence(state, resource_type, name)


def _check_name(resource_type: ResourceType, name: str) -> None:
    if resource_type == ResourceType.TOPIC and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if resource_type == ResourceType.TOPIC and (why := why_invalid_name(name)):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
    if resource_type == ResourceType.GROUP and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if resource_type == ResourceType.BROKER and name:
        broker_id = broker_id_of(name)
        if broker_id is None:
            text = "Unable to parse broker name as a base 10 number."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        if broker_id < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_existence(state: ControllerState, resource_type: ResourceType, name: str) -> None:
    image = state.image
    if resource_type == ResourceType.TOPIC and name not in image.topics:
        text = f"The topic '{name}' does not exist."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if resource_type == ResourceType.BROKER and name:
        known = {state.rules.node_id, *state.rules.voters, *image.brokers, *image.controllers}
        if broker_id_of(name) not in known:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _check_min_insync_replicas(state: ControllerState, record: m.ConfigRecord) -> None:
    """With eligible leader replicas all brokers share one min.insync.replicas (see feature_control.py)."""
    if record.name != MIN_INSYNC_REPLICAS or record.resource_type != ResourceType.BROKER:
        return
    if not state.elr_enabled:
        return
    if record.resource_name:
        text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    if record.value is None:
        text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def _clear_elr_records(state: ControllerState, records: Iterable[object]) -> list[object]:
    """Clear the ELR of topics whose min.insync.replicas changes: the ELR depends on it."""
    if not state.elr_enabled:
        return []
    return [
        m.ClearElrRecord(
            topic_name=record.resource_name if record.resource_type == ResourceType.TOPIC else ""
        )
        for record in records
        if isinstance(record, m.ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
    ]


def _config(resource_type: int, resource_name: str, name: str, value: str | None) -> m.ConfigRecord:
    return m.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
