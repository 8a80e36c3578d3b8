"""The entries of DescribeConfigs: each key's value, its source, and the synonyms that could set it.

These are Apache Kafka 4.3's rules, oddities included, because tools compare: a key of unknown type counts as
a secret; a synonym list starts at the entry with the described name, so that a value from
`log.retention.hours` appears as the default of `retention.ms`.

The entries are in the order of Apache Kafka's hash maps: some clients read entries by their position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from pykafka_broker.cluster.broker_names import broker_id_of
from pykafka_broker.config.broker import BROKER, SYNONYMS
from pykafka_broker.config.groups import broker_keys
from pykafka_broker.config.keys import REQUIRED, ConfigType, Key, render
from pykafka_broker.config.resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TABLES,
    TOPIC_RESOURCE,
)
from pykafka_broker.config.settings import LISTENER_PREFIX, base_key
from pykafka_broker.config.topic import BROKER_SYNONYMS, TOPIC_KEYS
from pykafka_broker.config.topics import topic_values
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import scala_walked, string_hash, walked
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.config.dynamic import DynamicConfig


#: Broker keys that come last in their bucket of Apache Kafka's hash map, because it defines them later than
#: our table does.
DEFINED_LATER = (
    "delegation.token.max.lifetime.ms",
    "controlled.shutdown.enable",
    "share.coordinator.state.topic.compression.codec",
    "controller.quorum.voters",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.auto.join.enable",
    "controller.quorum.fetch.max.bytes",
    "group.share.record.lock.duration.ms",
    "listeners",
    "socket.receive.buffer.bytes",
    "group.streams.initial.rebalance.delay.ms",
    "socket.connection.setup.timeout.max.ms",
    "log.preallocate",
    "sasl.kerberos.principal.to.local.rules",
    "log.flush.interval.messages",
    "log.flush.offset.checkpoint.interval.ms",
    "num.recovery.threads.per.data.dir",
    "ssl.keystore.type",
    "sasl.oauthbearer.assertion.private.key.file",
    "log.cleaner.io.max.bytes.per.second",
    "replica.selector.class",
    "group.consumer.max.heartbeat.interval.ms",
    "sasl.login.refresh.window.factor",
    "group.consumer.max.assignment.interval.ms",
    "group.share.session.timeout.ms",
    "security.providers",
    "share.coordinator.snapshot.update.records.per.snapshot",
    "share.coordinator.append.linger.ms",
    "group.streams.max.heartbeat.interval.ms",
    "controller.quota.window.size.seconds",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.retry.backoff.max.ms",
    "sasl.oauthbearer.client.credentials.client.secret",
)


class ConfigSource(IntEnum):
    """The source of a value, numbered as on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A key and source that sets the value, or would without the synonyms before it."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One key of one resource, as DescribeConfigs returns it."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: ConfigType
    documentation: str | None


def describe_broker(configs: DynamicConfig, name: str) -> list[ConfigEntry]:
    """The entries of this broker; for the empty name, the dynamic defaults of all brokers.

    Raises:
        KafkaError: INVALID_REQUEST, for another broker's name.
    """
    if name == "":
        overrides = configs.cluster_overrides
        return [_cluster_default(key, overrides[key]) for key in scala_walked(overrides)]
    node_id = configs.static.node_id
    if parse_broker_id(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )
    configured = {**configs.static.originals, **configs.cluster_overrides, **configs.broker_overrides}
    listed = _listed(BROKER_RESOURCE)
    others = configured.keys() - listed.keys()
    names = [key for key in walked(configured, string_hash, sized=True) if key in others]
    return [_broker_entry(key, configs, configured) for key in (*names, *listed)]


def parse_broker_id(name: str) -> int:
    """The broker id that a BROKER resource is named by.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    broker_id = broker_id_of(name)
    if broker_id is None:
        text = f"Broker id must be an integer, but it is: {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return broker_id


def describe_topic(configs: DynamicConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """The entries of a topic with these overrides."""
    values = topic_values(overrides, configs.current)
    internal = [key for key in TOPIC_KEYS if key.internal and key.name in overrides]
    return [
        _entry(
            key,
            render(values[key.name], key.type),
            ConfigSource.TOPIC if key.name in overrides else None,
            _broker_synonyms(configs, BROKER_SYNONYMS[key.name][0][0]) if key.name in BROKER_SYNONYMS else (),
        )
        for key in (*internal, *_listed(TOPIC_RESOURCE).values())
    ]


def describe_group(configs: DynamicConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """The entries of a group with these overrides."""
    entries = []
    for key in _listed(GROUP_RESOURCE).values():
        broker_key = broker_keys(key.name)[0]
        if broker_key in BROKER:
            default: Any = configs.current.values[broker_key]
            synonyms = _broker_synonyms(configs, broker_key)
        else:
            default = key.default
            synonyms = (Synonym(key.name, render(default, key.type), ConfigSource.DEFAULT),)
        is_set = key.name in overrides
        value = key.parse(overrides[key.name]) if is_set else default
        source = ConfigSource.GROUP if is_set else None
        entries.append(_entry(key, render(value, key.type), source, synonyms))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """The entries of a client metrics subscription."""
    return [
        _entry(
            key,
            overrides.get(key.name, render(key.default, key.type)),
            ConfigSource.CLIENT_METRICS if key.name in overrides else None,
            (),
        )
        for key in _listed(CLIENT_METRICS_RESOURCE).values()
    ]


@cache
def _listed(resource_type: int) -> dict[str, Key]:
    """The keys that every resource of a type has, by name and in the order of Apache Kafka's answers."""
    keys = {name: key for name, key in TABLES[resource_type].items() if not key.internal}
    first = [name for name in keys if name not in DEFINED_LATER]
    later = [name for name in DEFINED_LATER if name in keys]
    return {name: keys[name] for name in walked([*first, *later], string_hash)}


def _entry(
    key: Key, value: str | None, own_source: ConfigSource | None, synonyms: tuple[Synonym, ...]
) -> ConfigEntry:
    """An entry of any resource but a broker; `own_source` is None if the resource does not set the key."""
    if own_source is not None:
        synonyms = (Synonym(key.name, value, own_source), *synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(key.name, value, False, source, False, synonyms, key.type, key.documentation)


def _cluster_default(name: str, text: str) -> ConfigEntry:
    key = base_key(name)
    is_sensitive = key is None or key.is_sensitive
    synonym = Synonym(name, None if is_sensitive else text, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return ConfigEntry(
        name,
        synonym.value,
        not is_dynamic(name),
        synonym.source,
        is_sensitive,
        (synonym,),
        ConfigType.UNKNOWN if key is None else key.type,
        None if key is None else key.documentation,
    )


def _broker_entry(name: str, configs: DynamicConfig, configured: Mapping[str, str]) -> ConfigEntry:
    key = base_key(name)
    synonyms = _broker_synonyms(configs, name)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if key is None:
        return ConfigEntry(name, None, True, source, True, synonyms, ConfigType.UNKNOWN, None)
    if key.is_sensitive:
        value = None
    elif name in BROKER and not key.internal:
        value = render(configs.current.values[name], key.type)
    else:
        value = configured[name]
    return ConfigEntry(
        name, value, not is_dynamic(name), source, key.is_sensitive, synonyms, key.type, key.documentation
    )


def is_dynamic(name: str) -> bool:
    """Whether DescribeConfigs shows a broker key as dynamic; a key with a listener prefix never is."""
    key = None if name.startswith(LISTENER_PREFIX) else base_key(name)
    return key is not None and key.scope != "read-only"


def _broker_synonyms(configs: DynamicConfig, name: str) -> tuple[Synonym, ...]:
    key = base_key(name)
    is_sensitive = key is None or key.is_sensitive
    found = [
        Synonym(synonym, None if is_sensitive else text, source)
        for layer, source in (
            (configs.broker_overrides, ConfigSource.DYNAMIC_BROKER),
            (configs.cluster_overrides, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (configs.static.originals, ConfigSource.STATIC_BROKER),
            (None, ConfigSource.DEFAULT),
        )
        for synonym, text in _layer_values(layer, broker_key_synonyms(name))
    ]
    start = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[start:])


def _layer_values(layer: Mapping[str, str] | None, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        text = _default_text(name) if layer is None else layer.get(name)
        if text is not None:
            yield name, text


def _default_text(name: str) -> str | None:
    key = BROKER.get(name)
    return None if key is None or key.default is REQUIRED else render(key.default, key.type)


def broker_key_synonyms(name: str) -> tuple[str, ...]:
    """The broker keys that set the same value as `name`, `name` included, strongest first."""
    if name == "log.flush.interval.ms":
        return ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    for group in SYNONYMS:
        if name in group:
            return group
    if name.startswith(LISTENER_PREFIX) and (key := base_key(name)) is not None:
        return (name, key.name)
    return (name,)
