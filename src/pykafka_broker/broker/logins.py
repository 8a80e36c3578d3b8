"""The users as which this node asks other nodes, where these listen with SASL."""

from __future__ import annotations

from secrets import randbits
from typing import TYPE_CHECKING

from pykafka_broker.config import BrokerConfig

if TYPE_CHECKING:
    from pykafka_broker.client.authentication import Login


def inter_broker_login(config: BrokerConfig) -> Login | None:
    """For the listener that brokers use; None if it asks for none."""
    return _login(config, config.inter_broker_listener_name, config["sasl.mechanism.inter.broker.protocol"])


def controller_login(config: BrokerConfig) -> Login | None:
    """For the listeners of controllers; None if they ask for none."""
    names = config.controller_listener_names
    return _login(config, names[0], config["sasl.mechanism.controller.protocol"]) if names else None


def _login(config: BrokerConfig, listener: str, mechanism: str) -> Login | None:
    if not config.asks_for_sasl(listener):
        return None
    # Nodes without SASL do not pay for its mechanisms.
    from pykafka_broker.client.authentication import Login
    from pykafka_broker.config.sasl_listeners import node_user
    from pykafka_broker.sasl.scram_keys import RANDOM_BITS, random_text

    user, password = node_user(config, listener, mechanism)
    return Login(mechanism, user, password, lambda: random_text(randbits(RANDOM_BITS)))
