"""Faults on connections: counted, and logged once per interval for the same fault. The lines of each kind are
limited too (`system/repeated_lines.py`), as peers may have many addresses and invent names.

A peer that breaks the protocol, or takes too long, loses its connection and causes one line; so does each
user who cannot log in. A request that waits for too long causes a line that says what it waits for. An
exception of a handler is our fault: its traceback is logged, and the client gets the API's `error_response`,
or loses the connection if the API has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.apis.api import CLOSE
from pykafka_broker.network.counters import Counters
from pykafka_broker.network.unanswered import Overdue, Waiting, line
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.system.log_fields import Described
from pykafka_broker.system.repeated_lines import RepeatedLines
from pykafka_broker.system.wording import printable

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context
    from pykafka_broker.network.dispatch import Route


#: The most characters of a peer's name in a log line.
MOST_CHARACTERS = 100

login_logger = logging.getLogger("org.apache.kafka.common.network.Selector")


class Faulty(Described, Protocol):
    """A connection; its `repr` names it in the log."""

    peer_host: str
    #: Why it closes; empty while there is no reason.
    closes_because: str


class Faults:
    """The faults on all connections of a broker: counts and logs them."""

    __slots__ = ("_complaints", "_counters", "_logins")

    def __init__(self, counters: Counters, complaints: RepeatedLines, now_ms: Callable[[], int]) -> None:
        self._counters = counters
        self._complaints = complaints
        self._logins = RepeatedLines(
            login_logger,
            now_ms,
            left_out="%d more authentications have failed, which are not logged one by one",
        )

    def of_peer(self, connection: Faulty, kind: str, what: str, after: str = "") -> None:
        """The peer is at fault and loses its connection: one line per kind and host. `after` stands behind
        the name of the connection.
        """
        self._counters.connections_closed_for_errors += 1
        connection.closes_because = what
        text = f"Closing connection {connection!r}{after}: {what}"
        self._complaints.log(logging.WARNING, kind, connection.peer_host, text, None, connection)

    def of_waiting(self, connection: Faulty, request: Waiting, waited_ms: int) -> bool:
        """A request is unanswered for longer than it may take: one line at a time per API and host.

        Returns whether the line was logged.
        """
        subject = f"{request.api_name} {connection.peer_host}"
        text = line(connection, request, waited_ms)
        overdue = Overdue(request, connection)
        return self._complaints.log(logging.WARNING, "unanswered", subject, text, None, overdue)

    def of_standstill(self, duration_ms: int) -> None:
        """The process has not run for a while, so that requests waited which are not at fault."""
        text = (
            f"This process stood still for {duration_ms // 1_000:,} s: it was stopped, or something kept its "
            "event loop from running. Deadlines of requests and peers do not count that time"
        )
        self._complaints.log(logging.WARNING, "standstill", "", text)

    def of_login(self, connection: Faulty, mechanism: str, user: str | None, reason: str) -> None:
        """The peer is not who it says, and loses its connection: one line per host, user and mechanism."""
        self._counters.connections_closed_for_errors += 1
        connection.closes_because = f"its peer could not log in: {reason}"
        who = "an unknown user" if user is None else f"user {_shown(user)}"
        text = f"Failed authentication with {connection!r} as {who} by {_shown(mechanism)} ({reason})"
        subject = f"{connection.peer_host} {mechanism} {user}"
        self._logins.log(logging.WARNING, "authentication", subject, text, None, connection)

    def of_disk(self, connection: Faulty, error: BaseException) -> None:
        """A disk did not give the bytes that an answer announced; the connection is closed."""
        connection.closes_because = f"a log cannot be read while it is sent: {error}"
        text = f"Closing connection {connection!r}: {connection.closes_because}"
        kind = type(error).__name__
        self._complaints.log(logging.ERROR, kind, connection.peer_host, text, None, connection)

    def of_encoding(self, route: Route, context: Context[Any], connection: Faulty, error: Exception) -> None:
        """An answer cannot be encoded; the connection is closed."""
        connection.closes_because = f"the answer to {route.name} v{route.version} cannot be encoded"
        what = f"The answer to {route.name} v{route.version} cannot be encoded; closing {connection!r}"
        self._of_ours(route, what, error, context)

    def of_bare_token(self, connection: Faulty, error: Exception) -> None:
        """A token of SASL that is no request failed to be read; the connection is closed."""
        self._counters.handler_failures += 1
        connection.closes_because = "a token of it could not be read"
        text = f"Failed to read a token of {connection!r}; closing it"
        self._complaints.log(logging.ERROR, type(error).__name__, "token", text, error, connection)

    def of_sweep(self, connection: object, error: Exception) -> None:
        """The sweep failed to check the deadlines of a connection."""
        text = f"Failed to look at the deadlines of {connection!r}"
        self._complaints.log(logging.ERROR, type(error).__name__, "sweep", text, error)

    def of_handler(
        self, route: Route, context: Context[Any], request: Any, error: Exception, connection: Faulty
    ) -> Any:
        """A handler raised; the answer that says so, or CLOSE."""
        asked = f"{route.name} v{route.version}"
        if isinstance(error, ProtocolError):
            self.of_peer(connection, "protocol", str(error), f" after {asked}")
            return CLOSE
        error_response = route.api.error_response
        if not isinstance(error, KafkaError):
            self._of_ours(route, f"Failed to serve {asked} of {connection!r}", error, context)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        elif error_response is None:
            self._of_ours(route, f"{asked} of {connection!r} cannot answer {error}", error, context)
        if error_response is None:
            connection.closes_because = f"{asked} failed, which has no answer that says so"
            return CLOSE
        return error_response(request, error)

    def _of_ours(self, route: Route, what: str, error: Exception, request: Described) -> None:
        """Log the traceback, once per kind and route."""
        self._counters.handler_failures += 1
        subject = f"{route.name} v{route.version}"
        self._complaints.log(logging.ERROR, type(error).__name__, subject, what, error, request)


def _shown(name: str) -> str:
    """A name that the peer has sent, shortened and printable."""
    return printable(name if len(name) <= MOST_CHARACTERS else f"{name[:MOST_CHARACTERS]}...")
