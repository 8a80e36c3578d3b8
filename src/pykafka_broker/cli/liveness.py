"""Whether a node answers at all, asked without credentials: a node that refuses a login is alive.

A node answers ApiVersions before a login. If it requires a certificate, an answer to the TLS handshake is
enough, even a refusal. The node's certificate is not verified: nothing secret is sent, and a certificate that
others refuse is no reason for a restart.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pykafka_broker.cli.cluster import connected
from pykafka_broker.client.blocking import AnswerTimeout, connect
from pykafka_broker.client.core.addresses import Address, parse_address
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.protocol.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    import ssl


def sign_of_life(address: str, timeout_s: float, with_tls: bool) -> str:
    """What the node at HOST:PORT answers to a stranger: "versions" or "handshake".

    It is asked with TLS and without, because only its own configuration tells what the listener speaks;
    `with_tls` says which comes first.

    Raises:
        ConnectionError, ProtocolError: it answers neither (`AnswerTimeout`: it is silent).
    """
    first, second = (_over_tls, _versions) if with_tls else (_versions, _over_tls)
    try:
        return first(address, timeout_s)
    except AnswerTimeout:
        raise
    except (ConnectionError, ProtocolError) as error:
        try:
            return second(address, timeout_s)
        except (ConnectionError, ProtocolError):
            raise error from None


def greet(address: Address, timeout_s: float) -> str:
    """A TLS handshake, as far as it goes without a certificate: "handshake".

    Raises:
        ConnectionError: it is not answered in TLS.
    """
    import ssl

    with connect(address, timeout_s) as connected:
        try:
            _untrusting().wrap_socket(connected).close()
        except ssl.SSLError as error:
            # An alert is an answer: up to TLS 1.2 the handshake itself fails without a certificate.
            if "ALERT" not in (error.reason or ""):
                raise ConnectionError(f"{address} does not speak TLS") from None
        except OSError:
            raise ConnectionError(f"{address} does not answer a handshake of TLS") from None
    return "handshake"


def stranger(with_tls: bool) -> ClientSecurity | None:
    """The security of a client that verifies no certificate and has no credentials."""
    return ClientSecurity(tls=_untrusting) if with_tls else None


def _over_tls(address: str, timeout_s: float) -> str:
    try:
        return _versions(address, timeout_s, stranger(with_tls=True))
    except AnswerTimeout:
        raise
    except ConnectionError:
        return greet(parse_address(address), timeout_s)


def _versions(address: str, timeout_s: float, security: ClientSecurity | None = None) -> str:
    # An error of the broker is an answer too.
    with connected(address, timeout_s, security) as client, suppress(KafkaError):
        client.connection()
    return "versions"


def _untrusting() -> ssl.SSLContext:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
