"""Feature levels: raising and lowering finalized ones (KIP-584), and the configuration that eligible leader
replicas demand.

A level changes only when every broker and every voter of the quorum supports it. Downgrades of
metadata.version are refused, as Kafka refuses every one that could lose metadata.
"""

from __future__ import annotations

from pykafka_broker.cluster.events import FeatureUpdate, UpdateFeatures, UpgradeType
from pykafka_broker.cluster.features import ELR_VERSION
from pykafka_broker.cluster.image import METADATA_VERSION, FeatureRange, ResourceType
from pykafka_broker.cluster.state import MIN_INSYNC_REPLICAS, ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m


def update_features(state: ControllerState, event: UpdateFeatures) -> Decision:
    """Raise or lower finalized levels; nothing changes unless every node supports every new level."""
    records: tuple[object, ...] = tuple(_update(state, update) for update in event.updates)
    if ELR_VERSION in {update.name for update in event.updates if update.level > 0}:
        records = (*records, *elr_safety_records(state))
    return Decision() if event.validate_only else Decision(records)


def elr_safety_records(state: ControllerState) -> tuple[object, ...]:
    """With ELR, min.insync.replicas decides on the high watermark: it becomes one value for all brokers.

    The values of single brokers are dropped, and the cluster gets the value of this node's file.
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


def _update(state: ControllerState, update: FeatureUpdate) -> m.FeatureLevelRecord:
    def refuse(reason: str) -> KafkaError:
        text = f"Invalid update version {update.level} for feature {update.name}. {reason}"
        return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, text)

    def refuse_metadata_version(reason: str) -> KafkaError:
        text = f"Invalid metadata.version {update.level}. {reason}"
        return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, text)

    name, level = update.name, update.level
    if update.upgrade_type not in (
        UpgradeType.UPGRADE,
        UpgradeType.SAFE_DOWNGRADE,
        UpgradeType.UNSAFE_DOWNGRADE,
    ):
        raise refuse("The controller does not support the given upgrade type.")
    if level < 0:
        raise refuse("A feature version cannot be less than 0.")
    if reason := _not_supported(state, name, level):
        raise refuse(reason)
    current = state.image.metadata_version if name == METADATA_VERSION else state.image.features.get(name, 0)
    upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if level < current and upgrade:
        raise refuse(
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and not upgrade:
        raise refuse("Can't downgrade to a newer version.")
    if name == METADATA_VERSION and level < current:
        if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            raise refuse_metadata_version("Unsafe metadata downgrade is not supported in this version.")
        raise refuse_metadata_version(
            "Refusing to perform the requested downgrade because it might delete metadata information."
        )
    return m.FeatureLevelRecord(name=name, feature_level=level)


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
