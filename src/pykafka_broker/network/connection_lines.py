"""The log of connections: accepted, authenticated, closed; by whom, with which software, and why.

Apache Kafka logs these at DEBUG in several classes; here one logger has them all. They are about clients that
are let in; `accepting.py` logs those that are refused, and `faults.py` logs faults.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.network.unanswered import quoted
from pykafka_broker.system.log_fields import Described, about
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.connection import Software

logger = logging.getLogger("kafka.connection.logger")


class Logged(Described, Protocol):
    """A connection; its `repr` names it in the log."""

    principal: str
    client_id: str
    software: Software


def accepted(connection: Logged, *, logs_in: bool) -> None:
    """A connection has opened; with TLS, its handshake is over. `logs_in`: its peer has to use SASL now."""
    if logger.isEnabledFor(logging.DEBUG):
        who = "a peer that has to log in" if logs_in else quoted(connection.principal)
        logger.debug("%s", f"Accepted connection {connection!r} of {who}", extra=about(connection))


def authenticated(connection: Logged, mechanism: str, *, again: bool) -> None:
    """The peer of a connection has logged in with SASL; `again`: it has renewed its session."""
    if logger.isEnabledFor(logging.DEBUG):
        again_or_not, who = " again" if again else "", quoted(connection.principal)
        text = f"Authenticated connection {connection!r}{again_or_not} as {who} by {mechanism}"
        logger.debug("%s", text, extra=about(connection))


def closed(connection: Logged, requests: int, reason: str) -> None:
    """A connection is lost after it has served `requests`."""
    if logger.isEnabledFor(logging.DEBUG):
        name, version = connection.software
        text = (
            f"Closed connection {connection!r} of {quoted(connection.principal)}, client "
            f"{quoted(connection.client_id)} with {name} {version}, after "
            f"{counted(requests, 'request')}: {reason}"
        )
        logger.debug("%s", text, extra=about(connection, requests=requests, reason=reason))
