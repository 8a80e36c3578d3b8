"""What the requests to the active controller have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pykafka_broker.cluster.features import declared_where
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.protocol.errors import KafkaError, error_of
from pykafka_broker.system.named_tuple import NamedTuple


class Terms(NamedTuple):
    """The data of a request besides its event: its time-out, and the finalized features that are known."""

    timeout_ms: int
    features: Mapping[str, int]


class Listener(Protocol):
    """A listener in a registration."""

    name: str
    host: str
    port: int
    security_protocol: int


class Feature(Protocol):
    """A feature in a registration."""

    name: str
    min_supported_version: int
    max_supported_version: int


class Registration(Protocol):
    """The message classes that both registrations have."""

    Listener: Any
    Feature: Any


def raise_refusal(code: int, message: str | None = None) -> None:
    """Raise the error of a response, if it has one."""
    if code:
        raise KafkaError(error_of(code), message or None)


def told_listeners(m: Registration, listeners: Mapping[str, RegisteredEndpoint]) -> list[Any]:
    """The listeners of a node in the message classes of `m`."""
    return [
        m.Listener(name=name, host=at.host, port=at.port, security_protocol=at.security_protocol)
        for name, at in listeners.items()
    ]


def read_listeners(listeners: Iterable[Listener]) -> dict[str, RegisteredEndpoint]:
    """The endpoints of a node by the names of its listeners."""
    return {each.name: RegisteredEndpoint(each.host, each.port, each.security_protocol) for each in listeners}


def told_features(m: Registration, features: Mapping[str, FeatureRange], terms: Terms) -> list[Any]:
    """The features of a node in the message classes of `m`."""
    return [
        m.Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
        for name, levels in declared_where(terms.features, features).items()
    ]


def read_features(features: Iterable[Feature]) -> dict[str, FeatureRange]:
    """The features of a node by their names."""
    return {
        each.name: FeatureRange(each.min_supported_version, each.max_supported_version) for each in features
    }
