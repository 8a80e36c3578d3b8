"""The metadata as a tree of directories and files, with the names of Apache Kafka's kafka-metadata-shell 4.3.

    /image  acls/byId, clientQuotas, cluster/{brokers,controllers}, configs, delegationToken, features,
            producerIds, provenance, scram, topics/{byId,byName}
    /local  commitId, version

A pure view: directories read the image when they are listed, and copy nothing.

Secrets are shown as [redacted]: SCRAM credentials, delegation tokens, sensitive configurations and unknown
ones. Apache's shell prints them, although its own criteria for such nodes redact them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Optional, TypeVar, Union

from pykafka_broker import __version__
from pykafka_broker.cli.redaction import REDACTED
from pykafka_broker.cluster.features import METADATA_VERSION_NAMES
from pykafka_broker.cluster.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    FeatureRange,
    LeaderRecoveryState,
    PartitionRegistration,
    RegisteredEndpoint,
    ResourceType,
    TopicImage,
)
from pykafka_broker.config.listeners import SECURITY_PROTOCOLS
from pykafka_broker.config.rules import is_secret_config
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.system.named_tuple import NamedTuple

#: The name of the default entity of a client quota, which has none of its own.
DEFAULT_ENTITY = "<default>"

#: The numbers of ACLs in the protocol, from 0 on.
_ACL_RESOURCE_TYPES = (
    *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
)
_ACL_PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_ACL_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
    "TWO_PHASE_COMMIT",
)
_ACL_PERMISSION_TYPES = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_SCRAM_MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
#: The names of entity types in names of directories, in their order there.
_ENTITY_TYPES = {"client-id": "clientId", "ip": "ip", "user": "user"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Key = TypeVar("Key")
Value = TypeVar("Value")


class View(NamedTuple):
    """An image, and the time of its newest record in milliseconds since 1970; -1 if it is not known."""

    image: ClusterImage
    last_timestamp_ms: int = -1


class Directory(NamedTuple):
    """A node with children: their names, unordered, and a child by its name."""

    names: Callable[[], Iterable[str]]
    child: Callable[[str], Optional[Node]]

    def sorted_names(self) -> list[str]:
        """The names in the order in which they are shown."""
        return sorted(self.names())


#: A file is its text.
Node = Union[Directory, str]


def root(view: View) -> Directory:
    """The directory `/`."""
    return _fixed(
        {
            "image": lambda: _image(view),
            "local": lambda: _fixed({"commitId": lambda: "unknown", "version": lambda: __version__}),
        }
    )


def _image(view: View) -> Directory:
    image = view.image
    return _fixed(
        {
            "acls": lambda: _fixed({"byId": lambda: _table(image.acls, uuid_text, _acl)}),
            "clientQuotas": lambda: _table(image.client_quotas, _entity_name, _quotas),
            "cluster": lambda: _fixed(
                {
                    "brokers": lambda: _table(image.brokers, str, _broker),
                    "controllers": lambda: _table(image.controllers, str, _controller),
                }
            ),
            "configs": lambda: _configs(image),
            "delegationToken": lambda: _table(image.delegation_tokens, str, _delegation_token),
            "features": lambda: _features(image),
            "producerIds": lambda: _fixed({"nextProducerId": lambda: str(image.next_producer_id)}),
            "provenance": lambda: _provenance(view),
            "scram": lambda: _scram(image),
            "topics": lambda: _topics(image),
        }
    )


# -- directories -----------------------------------------------------------------------------------------


def _fixed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    """A directory whose names are known beforehand."""

    def child(name: str) -> Node | None:
        make = children.get(name)
        return None if make is None else make()

    return Directory(children.keys, child)


def _table(
    table: Mapping[Key, Value], name_of: Callable[[Key], str], node_of: Callable[[Value], Node]
) -> Directory:
    """A directory with a node for each entry of a table."""
    named = {name_of(key): value for key, value in table.items()}
    return Directory(named.keys, lambda name: node_of(named[name]) if name in named else None)


def _topics(image: ClusterImage) -> Directory:
    def by_name(name: str) -> Node | None:
        topic = image.topics.get(name)
        return None if topic is None else _topic(topic)

    names_by_id = {uuid_text(topic_id): name for topic_id, name in image.topic_names.items()}

    def by_id(name: str) -> Node | None:
        return by_name(names_by_id[name]) if name in names_by_id else None

    return _fixed(
        {
            "byId": lambda: Directory(names_by_id.keys, by_id),
            "byName": lambda: Directory(image.topics.keys, by_name),
        }
    )


def _topic(topic: TopicImage) -> Directory:
    partitions = {str(number): partition for number, partition in topic.partitions.items()}

    def child(name: str) -> Node | None:
        if name in partitions:
            return _partition(partitions[name])
        return {"id": uuid_text(topic.topic_id), "name": topic.name}.get(name)

    return Directory(lambda: (*partitions, "id", "name"), child)


def _configs(image: ClusterImage) -> Directory:
    names = {_resource_name(*resource): resource for resource in image.configs}

    def child(name: str) -> Node | None:
        resource = names.get(name)
        if resource is None:
            return None
        values = image.configs[resource]

        def value(key: str) -> Node | None:
            if key not in values:
                return None
            return REDACTED if is_secret_config(resource[0], key) else values[key]

        return Directory(values.keys, value)

    return Directory(names.keys, child)


def _resource_name(resource_type: int, name: str) -> str:
    kind = _name_of(tuple(ResourceType.__members__.items()), resource_type)
    return f"{kind}:{name}" if name else kind


def _name_of(members: tuple[tuple[str, ResourceType], ...], number: int) -> str:
    return next((name for name, value in members if value == number), str(number))


def _features(image: ClusterImage) -> Directory:
    level = image.metadata_version
    files = {"metadataVersion": METADATA_VERSION_NAMES.get(level, str(level))}
    files |= {
        f"finalized_{name}": str(value) for name, value in image.features.items() if name != METADATA_VERSION
    }
    return Directory(files.keys, files.get)


def _scram(image: ClusterImage) -> Directory:
    def users(number: int) -> Directory:
        names = {name for name, mechanism in image.scram_credentials if mechanism == number}
        hidden = f"salt={REDACTED}, storedKey={REDACTED}, serverKey={REDACTED}, iterations={REDACTED}"
        return Directory(
            lambda: names, lambda name: f"ScramCredentialData({hidden})" if name in names else None
        )

    def child(name: str) -> Node | None:
        number = _SCRAM_MECHANISMS.get(name)
        return None if number is None else users(number)

    return Directory(_SCRAM_MECHANISMS.keys, child)


def _entity_name(entity: tuple[tuple[str, str | None], ...]) -> str:
    """A name such as `clientId(c)_user(u)`; the parts of an entity are in the order of their types."""
    return "_".join(
        f"{_ENTITY_TYPES.get(kind, kind)}({DEFAULT_ENTITY if name is None else _escaped(name)})"
        for kind, name in entity
    )


def _escaped(name: str) -> str:
    return re.sub(r"([\\()])", r"\\\1", name)


def _quotas(quotas: Mapping[str, float]) -> Directory:
    return _table(quotas, str, str)


# -- files -----------------------------------------------------------------------------------------------


def _provenance(view: View) -> str:
    image, timestamp_ms = view
    if timestamp_ms < 0:
        time = "unknown"
    else:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
        time = (
            moment.isoformat(timespec="milliseconds").removesuffix("+00:00").removesuffix(".000") + "Z[UTC]"
        )
    return f"offset {image.offset}, epoch {image.epoch}, time {time}"


def _partition(partition: PartitionRegistration) -> str:
    recovery = LeaderRecoveryState(partition.leader_recovery_state).name
    return (
        f"PartitionRegistration(replicas={_listed(partition.replicas)}, "
        f"directories={_listed(map(uuid_text, partition.directories))}, isr={_listed(partition.isr)}, "
        f"removingReplicas={_listed(partition.removing)}, addingReplicas={_listed(partition.adding)}, "
        f"elr={_listed(partition.elr)}, lastKnownElr={_listed(partition.last_known_elr)}, "
        f"leader={partition.leader}, leaderRecoveryState={recovery}, leaderEpoch={partition.leader_epoch}, "
        f"partitionEpoch={partition.partition_epoch})"
    )


def _broker(broker: BrokerRegistration) -> str:
    cordoned = broker.cordoned_directories
    return (
        f"BrokerRegistration(id={broker.broker_id}, epoch={broker.epoch}, "
        f"incarnationId={uuid_text(broker.incarnation_id)}, listeners={_endpoints(broker.listeners)}, "
        f"supportedFeatures={_ranges(broker.features)}, rack={_or_null(broker.rack)}, "
        f"fenced={_java(broker.fenced)}, inControlledShutdown={_java(broker.in_controlled_shutdown)}, "
        f"directories={_listed(map(uuid_text, broker.directories))}, "
        f"cordonedDirectories={_or_null(None if cordoned is None else _listed(map(uuid_text, cordoned)))})"
    )


def _controller(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.controller_id}, "
        f"incarnationId={uuid_text(controller.incarnation_id)}, "
        f"listeners={_endpoints(controller.listeners)}, supportedFeatures={_ranges(controller.features)})"
    )


def _acl(acl: m.AccessControlEntryRecord) -> str:
    return (
        f"StandardAcl[resourceType={_word(_ACL_RESOURCE_TYPES, acl.resource_type)}, "
        f"resourceName={acl.resource_name}, patternType={_word(_ACL_PATTERN_TYPES, acl.pattern_type)}, "
        f"principal={acl.principal}, host={acl.host}, operation={_word(_ACL_OPERATIONS, acl.operation)}, "
        f"permissionType={_word(_ACL_PERMISSION_TYPES, acl.permission_type)}]"
    )


def _delegation_token(_token: m.DelegationTokenRecord) -> str:
    fields = (
        "tokenId",
        "owner",
        "tokenRequester",
        "renewers",
        "issueTimestamp",
        "maxTimestamp",
        "expiryTimestamp",
    )
    return f"DelegationTokenData({', '.join(f'{field}={REDACTED}' for field in fields)})"


def _endpoints(listeners: Mapping[str, RegisteredEndpoint]) -> str:
    return _listed(
        f"Endpoint(listenerName='{name}', securityProtocol={_word(SECURITY_PROTOCOLS, protocol)}, "
        f"host='{host}', port={port})"
        for name, (host, port, protocol) in sorted(listeners.items())
    )


def _ranges(features: Mapping[str, FeatureRange]) -> str:
    parts = (
        f"{name}: {lowest}" if lowest == highest else f"{name}: {lowest}-{highest}"
        for name, (lowest, highest) in sorted(features.items())
    )
    return "{" + ", ".join(parts) + "}"


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _or_null(text: str | None) -> str:
    return "null" if text is None else text


def _java(flag: bool) -> str:
    return "true" if flag else "false"
