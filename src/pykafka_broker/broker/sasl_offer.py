"""The mechanisms that a listener offers its peers, made of its configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from secrets import randbits

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.scram_credentials import credential_in
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES, MechanismSettings, sasl_settings
from pykafka_broker.network.sasl import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.sasl.plain import PLAIN, PlainServer
from pykafka_broker.sasl.scram_keys import RANDOM_BITS, SCRAM_MECHANISMS, ScramMechanism, random_text
from pykafka_broker.sasl.scram_server import ScramEntry, ScramServer


def sasl_of_listener(
    config: BrokerConfig, listener: str, shared: Shared, image: Callable[[], ClusterImage]
) -> Sasl:
    """The authentication of `listener`; its mechanisms are told in the order of Apache Kafka's hash set.

    `image` is the newest committed metadata, where the credentials of SCRAM are.

    Raises:
        ConfigError: its configuration cannot be served.
    """
    settings = sasl_settings(config, listener)
    names = walked(settings.mechanisms, string_hash, sized=True)
    return Sasl(
        {name: _offered(name, settings.mechanisms[name], image) for name in names},
        shared.clock,
        shared.faults,
        max_receive_bytes=settings.max_receive_bytes,
        failure_delay_ms=config["connection.failed.authentication.delay.ms"],
    )


def _offered(name: str, settings: MechanismSettings, image: Callable[[], ClusterImage]) -> OfferedMechanism:
    scram = SCRAM_MECHANISMS.get(name)
    if scram is not None:
        return OfferedMechanism(partial(_scram_server, scram, image), settings.max_reauth_ms)
    login = settings.login
    # Apache Kafka looks for users in the login module of this mechanism alone.
    passwords = login.passwords if login.class_name == LOGIN_MODULES[PLAIN] else {}
    return OfferedMechanism(partial(PlainServer, passwords), settings.max_reauth_ms)


def _scram_server(mechanism: ScramMechanism, image: Callable[[], ClusterImage]) -> ScramServer:
    """The server's side of one exchange, with the credentials of now."""
    metadata = image()

    def find(name: str, by_token: bool) -> ScramEntry | None:
        credential = None if by_token else credential_in(metadata, name, mechanism)
        return None if credential is None else ScramEntry(credential, Account(name))

    return ScramServer(mechanism, find, random_text(randbits(RANDOM_BITS)))
