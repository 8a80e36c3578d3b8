"""The broker that runs here with a known configuration: its listeners for `health`, which asks without being
one of its users, and for the console that it serves.

The listener for clients that tells a stranger most is asked:

    PLAINTEXT                         its metadata and its disks, as everywhere
    SSL                               the same, after a handshake of TLS
    SASL_PLAINTEXT, SASL_SSL          ApiVersions, which is answered before the login
    ssl.client.auth=required          the handshake: that it is answered, even by a refusal
"""

from __future__ import annotations

import os

import click

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.config.settings import BrokerConfig
from pykafka_broker.config.sources import load_config
from pykafka_broker.config.tls_listeners import tls_settings
from pykafka_broker.system.named_tuple import NamedTuple


class OwnListener(NamedTuple):
    """A listener for clients, at an address that can be reached from here."""

    name: str
    address: Address
    security_protocol: str
    #: Whether it requires a certificate.
    needs_certificate: bool

    @property
    def needs_user(self) -> bool:
        """Whether clients must log in."""
        return self.security_protocol.startswith("SASL")

    @property
    def with_tls(self) -> bool:
        """Whether connections begin with a TLS handshake."""
        return self.security_protocol.endswith("SSL")


def listeners_of(file: str | None) -> list[OwnListener]:
    """The listeners of the broker that `start` would run here, in the order of the configuration.

    Raises:
        ConfigError, OSError: the configuration cannot be read.
    """
    return own_listeners(load_config(file=file, environ=os.environ))


def own_listeners(config: BrokerConfig) -> list[OwnListener]:
    """The listeners of the broker with this configuration, in its order."""
    found = []
    for name, host, port, protocol in config.broker_listeners:
        address = Address("127.0.0.1" if host in ("", "0.0.0.0") else host, port)
        found.append(OwnListener(name, address, protocol, _needs_certificate(config, name, protocol)))
    return found


def most_open(listeners: list[OwnListener]) -> OwnListener:
    """The listener that tells a client without credentials most."""
    return min(listeners, key=lambda one: (one.needs_certificate, one.needs_user, one.security_protocol))


def most_closed(listeners: list[OwnListener]) -> OwnListener:
    """The listener that makes clients log in, if there is one; of several, one that needs no certificates."""
    return min(listeners, key=lambda one: (not one.needs_user, one.needs_certificate, one.with_tls))


def for_security(listeners: list[OwnListener], security: ClientSecurity) -> OwnListener:
    """The first listener that a client with this security can use.

    Raises:
        click.ClickException: there is none.
    """
    for listener in listeners:
        if listener.security_protocol == security.protocol:
            return listener
    others = ", ".join(dict.fromkeys(one.security_protocol for one in listeners))
    raise click.ClickException(f"No listener of this broker has {security.protocol}: they have {others}")


def _needs_certificate(config: BrokerConfig, name: str, protocol: str) -> bool:
    return protocol.endswith("SSL") and tls_settings(config, name, protocol).client_auth == "required"
