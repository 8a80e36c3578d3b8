"""The security protocols a listener can have: a transport and an authentication each.

Left for later on purpose: SSL, SASL_PLAINTEXT and SASL_SSL. Each is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykafka_broker.network.authentication import Anonymous, Authentication
from pykafka_broker.network.transports import Plaintext, Transport


class SecurityProtocol(NamedTuple):
    """How bytes travel, and how peers say who they are."""

    transport: Transport
    authentication: Authentication


SECURITY_PROTOCOLS: Mapping[str, SecurityProtocol] = {
    "PLAINTEXT": SecurityProtocol(Plaintext(), Anonymous()),
}


def security_protocol(name: str, listener: str) -> SecurityProtocol:
    """The protocol of a listener.

    Raises:
        ValueError: it is not offered.
    """
    found = SECURITY_PROTOCOLS.get(name)
    if found is None:
        raise ValueError(
            f"Listener {listener}: security protocol {name} is not offered, "
            f"only {' and '.join(SECURITY_PROTOCOLS)} is"
        )
    return found
