"""The mechanisms that a listener offers its peers, made of its configuration."""

from __future__ import annotations

from functools import partial

from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES, MechanismSettings, sasl_settings
from pykafka_broker.network.sasl import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.sasl.plain import PLAIN, PlainServer


def sasl_of_listener(config: BrokerConfig, listener: str, shared: Shared) -> Sasl:
    """The authentication of `listener`; its mechanisms are told in the order of Apache Kafka's hash set.

    Raises:
        ConfigError: its configuration cannot be served.
    """
    settings = sasl_settings(config, listener)
    names = walked(settings.mechanisms, string_hash, sized=True)
    return Sasl(
        {name: _offered(name, settings.mechanisms[name]) for name in names},
        shared.clock,
        shared.faults,
        max_receive_bytes=settings.max_receive_bytes,
        failure_delay_ms=config["connection.failed.authentication.delay.ms"],
    )


def _offered(name: str, settings: MechanismSettings) -> OfferedMechanism:
    assert name == PLAIN, name
    login = settings.login
    # Apache Kafka looks for users in the login module of this mechanism alone.
    passwords = login.passwords if login.class_name == LOGIN_MODULES[PLAIN] else {}
    return OfferedMechanism(partial(PlainServer, passwords), settings.max_reauth_ms)
