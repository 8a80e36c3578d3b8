"""Feature levels: raising and lowering finalized ones (KIP-584), and the configuration that ELR needs.

A level changes only if every broker and every voter supports it. A metadata.version is lowered only if the
older one has all the metadata of the newer one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.features import (
    ELR_VERSION,
    FEATURE_DEPENDENCIES,
    KRAFT_VERSION,
    NODE_FEATURES,
    loses_metadata,
)
from pykafka_broker.cluster.image import METADATA_VERSION, FeatureRange, ResourceType
from pykafka_broker.controller.core.events import FeatureUpdate, UpdateFeatures, UpgradeType
from pykafka_broker.controller.core.state import MIN_INSYNC_REPLICAS, ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.records import metadata as m

UPGRADE_TYPES = (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE)


def update_features(state: ControllerState, event: UpdateFeatures) -> Decision:
    """Raise or lower finalized levels; nothing changes unless every update is valid.

    If a feature is updated several times, the last update counts. The error is that of the first invalid
    update, in the order of Apache Kafka's hash maps.
    """
    updates = {update.name: update for update in event.updates}
    image = state.image
    proposed = {
        **image.features,
        METADATA_VERSION: image.metadata_version,
        **{name: update.level for name, update in updates.items()},
    }
    records: list[object] = []
    for name in walked(updates, string_hash):
        records += _update(state, event, updates[name], proposed)
    if ELR_VERSION in updates and updates[ELR_VERSION].level > 0:
        records += elr_safety_records(state)
    return Decision() if event.validate_only else Decision(tuple(records))


def elr_safety_records(state: ControllerState) -> tuple[object, ...]:
    """Make min.insync.replicas one value for all brokers: with ELR the high watermark depends on it.

    The values of single brokers are removed. If the cluster has no value, it gets this node's static value.
    """
    configs = state.image.configs
    removed = tuple(
        _config(ResourceType.BROKER, name, MIN_INSYNC_REPLICAS, None)
        for (kind, name), values in sorted(configs.items())
        if kind == ResourceType.BROKER and name and MIN_INSYNC_REPLICAS in values
    )
    if MIN_INSYNC_REPLICAS in configs.get((ResourceType.BROKER, ""), {}):
        return removed
    value = state.rules.configs.static(MIN_INSYNC_REPLICAS) or "1"
    return (_config(ResourceType.BROKER, "", MIN_INSYNC_REPLICAS, value), *removed)


def _config(resource_type: int, resource_name: str, name: str, value: str | None) -> m.ConfigRecord:
    return m.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)


def _update(
    state: ControllerState, event: UpdateFeatures, update: FeatureUpdate, proposed: Mapping[str, int]
) -> list[object]:
    """The records of one update; `proposed` are the levels of all features after all updates."""

    def refuse(reason: str) -> KafkaError:
        return _refusal(f"Invalid update version {level} for feature {name}. {reason}")

    name, level = update.name, update.level
    if update.upgrade_type not in UPGRADE_TYPES:
        raise refuse("The controller does not support the given upgrade type.")
    if level < 0:
        raise refuse("A feature version cannot be less than 0.")
    if reason := _not_supported(state, name, level):
        raise refuse(reason)
    current = _current_level(state, name)
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if level < current and is_upgrade:
        raise refuse(
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and not is_upgrade:
        raise refuse("Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_downgrade(current, update)
    elif name == KRAFT_VERSION:
        if level < current:
            raise refuse("Can't downgrade the version of this feature.")
        if level > current and event.kraft_version_refusal is not None:
            raise _refusal(event.kraft_version_refusal)
        # The level is in control records; an upgrade has a NoOpRecord even if it changes nothing.
        return [m.NoOpRecord()] if is_upgrade else []
    elif name not in NODE_FEATURES:
        raise refuse(f"Feature {name} not found.")
    else:
        for other, needed in FEATURE_DEPENDENCIES.get((name, level), {}).items():
            if proposed.get(other, 0) < needed:
                text = f"{name} could not be set to {level} because it depends on {other} level {needed}"
                raise refuse(text)
    return [m.FeatureLevelRecord(name=name, feature_level=level)]


def _current_level(state: ControllerState, name: str) -> int:
    if name == METADATA_VERSION:
        return state.image.metadata_version
    if name == KRAFT_VERSION:
        return state.rules.kraft_version
    return state.image.features.get(name, 0)


def _check_downgrade(current: int, update: FeatureUpdate) -> None:
    """Refuse a metadata.version that would lose metadata."""
    if loses_metadata(current, update.level):
        if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        else:
            why = "Refusing to perform the requested downgrade because it might delete metadata information."
        raise _refusal(f"Unsupported {METADATA_VERSION} downgrade from {current} to {update.level}. {why}")


def _refusal(text: str) -> KafkaError:
    """The error of the whole request: one invalid update refuses all."""
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"The update failed for all features since the following feature had an error: {text}",
    )


def _not_supported(state: ControllerState, name: str, level: int) -> str | None:
    """The text of the error if some node cannot work at `level`, or None."""
    rules, image = state.rules, state.image
    nodes: list[tuple[str, FeatureRange | None]] = [
        (f"Local controller {rules.node_id}", rules.supported_features.get(name))
    ]
    nodes += [(f"Broker {broker.broker_id}", broker.features.get(name)) for broker in image.brokers.values()]
    nodes += [
        (f"Controller {controller.controller_id}", controller.features.get(name))
        for controller in image.controllers.values()
        if controller.controller_id != rules.node_id
    ]
    for who, supported in nodes:
        if supported is None or supported.max_level == 0:
            if level != 0:
                return f"{who} does not support this feature."
        elif not supported.min_level <= level <= supported.max_level:
            return f"{who} only supports versions {supported.min_level}-{supported.max_level}"
    for voter in rules.voters:
        if voter != rules.node_id and voter not in image.controllers:
            return f"controller {voter} has not registered, and may not support this feature"
    return None
