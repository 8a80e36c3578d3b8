"""How this node connects to others: as its user, if they use SASL, and with TLS.

As in Apache Kafka, keys that IncrementalAlterConfigs sets for
an inter-node listener apply to new connections in both directions; the user is that of the start.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import randbits
from typing import TYPE_CHECKING

from pykafka_broker.config import BrokerConfig

if TYPE_CHECKING:
    from ssl import SSLContext

    from pykafka_broker.client.aio import AsyncConnection
    from pykafka_broker.client.core.addresses import Address
    from pykafka_broker.client.core.authentication import Login, TokenLogin
    from pykafka_broker.client.core.connection import ClientSecurity
    from pykafka_broker.machine.clock import Clock


def security_with_brokers(current: Callable[[], BrokerConfig]) -> ClientSecurity | None:
    """The security for the inter-broker listener; None for PLAINTEXT.

    Raises:
        ConfigError: the TLS keys cannot be used.
    """
    config = current()
    return _security(
        current, config.inter_broker_listener_name, config["sasl.mechanism.inter.broker.protocol"]
    )


def security_with_controllers(current: Callable[[], BrokerConfig]) -> ClientSecurity | None:
    """The security for the controller listeners; None for PLAINTEXT.

    Raises:
        ConfigError: the TLS keys cannot be used.
    """
    config = current()
    names = config.controller_listener_names
    return _security(current, names[0], config["sasl.mechanism.controller.protocol"]) if names else None


async def connect_to_broker(
    client_id: str, security: ClientSecurity | None, clock: Clock, address: Address, timeout_ms: int
) -> AsyncConnection:
    """A connection of this node to another broker, under the client id that Apache Kafka has for its purpose.

    Raises:
        OSError, ProtocolError, KafkaError: as `client.aio.connect`.
    """
    # Imported late: a broker without others needs no client.
    from pykafka_broker.client.aio import connect
    from pykafka_broker.client.core.connection import Identity

    identity = Identity(client_id, kind="node", security=security)
    return await connect(address, identity=identity, clock=clock, timeout_ms=timeout_ms)


def _security(current: Callable[[], BrokerConfig], listener: str, mechanism: str) -> ClientSecurity | None:
    login, tls = _login(current(), listener, mechanism), _tls(current, listener)
    if login is None and tls is None:
        return None
    from pykafka_broker.client.core.connection import ClientSecurity  # a single node needs no client

    return ClientSecurity(login, tls)


def _login(config: BrokerConfig, listener: str, mechanism: str) -> Login | TokenLogin | None:
    if not config.protocol_of(listener).startswith("SASL_"):
        return None
    # Imported late: nodes without SASL do not need its mechanisms.
    from pykafka_broker.client.core.authentication import Login, TokenLogin
    from pykafka_broker.config.sasl_listeners import NodeUser, node_login
    from pykafka_broker.sasl.scram_keys import RANDOM_BITS, random_text

    login = node_login(config, listener, mechanism)
    if not isinstance(login, NodeUser):
        from pykafka_broker.client.bearer_tokens import new_bearer_tokens

        return TokenLogin(new_bearer_tokens(login))
    return Login(mechanism, login.name, login.password, lambda: random_text(randbits(RANDOM_BITS)))


def _tls(current: Callable[[], BrokerConfig], listener: str) -> Callable[[], SSLContext] | None:
    protocol = current().protocol_of(listener)
    if not protocol.endswith("SSL"):
        return None
    from pykafka_broker.broker.security.tls_offer import ListenerContext
    from pykafka_broker.tls.contexts import client_context

    return ListenerContext(current, listener, protocol, client_context)
