"""An image as records again: the content of a snapshot of the metadata log.

Replaying the records gives the image again, except for the offsets at which brokers registered, which only
the log has. The order is that of Kafka's own writer: features first, because the other records depend on
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pykafka_broker.cluster.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    QuotaEntity,
)
from pykafka_broker.protocol.messages.records import metadata as m


def snapshot_records(image: ClusterImage) -> Iterator[object]:
    """The records of `image`."""
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield m.FeatureLevelRecord(name=name, feature_level=image.features[name])
    for broker in image.brokers.values():
        yield broker_record(broker)
    for controller in image.controllers.values():
        yield controller_record(controller)
    for topic in image.topics.values():
        yield m.TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions.values():
            yield partition.to_record(topic.topic_id)
    for (kind, resource_name), values in image.configs.items():
        for key, value in values.items():
            yield m.ConfigRecord(resource_type=kind, resource_name=resource_name, name=key, value=value)
    yield from _quota_records(image.client_quotas)
    if image.next_producer_id:
        yield m.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()


def broker_record(broker: BrokerRegistration) -> m.RegisterBrokerRecord:
    """The record that registers a broker as it is now."""
    return m.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            m.BrokerEndpoint(name=name, host=host, port=port, security_protocol=security_protocol)
            for name, (host, port, security_protocol) in broker.listeners.items()
        ],
        features=[
            m.BrokerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if broker.cordoned_directories is None else list(broker.cordoned_directories),
    )


def controller_record(controller: ControllerRegistration) -> m.RegisterControllerRecord:
    """The record that registers a controller as it is now."""
    return m.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            m.ControllerEndpoint(name=name, host=host, port=port, security_protocol=security_protocol)
            for name, (host, port, security_protocol) in controller.listeners.items()
        ],
        features=[
            m.ControllerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in controller.features.items()
        ],
    )


def _quota_records(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> Iterator[object]:
    for entity, values in quotas.items():
        parts = [m.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, value in values.items():
            yield m.ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
