"""One listener: it binds an address, lets clients queue up there, and calls back when one is waiting."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from pykafka_broker.network.addresses import Addresses, addresses_of, shown
from pykafka_broker.network.connection_factory import ConnectionFactory
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.transports import Transport
from pykafka_broker.quotas.connection_rates import ConnectionRate
from pykafka_broker.system.named_tuple import NamedTuple

#: The least length of the listen queue: a client that finds the queue full repeats its SYN after a second.
MIN_BACKLOG = 1024
#: How many ports above a taken one are tried to find a free one to propose.
PORTS_TRIED = 20
#: Called when a client may be waiting at one of a listener's sockets.
Accept = Callable[["Listener", socket.socket], None]


class ListenerService(NamedTuple):
    """The transport of a listener, and the factory of its connections."""

    transport: Transport
    #: Makes a connection for each client that is let in.
    new_connection: ConnectionFactory


class Listener:
    """One endpoint: its listening sockets and its share of the connections."""

    def __init__(
        self, endpoint: ListenerEndpoint, service: ListenerService, accept: Accept, rate: ConnectionRate
    ) -> None:
        self.endpoint = endpoint
        self.service = service
        #: That of its new connections.
        self.rate = rate
        #: Whether its next client may come in without another look at the rates: they have counted it.
        self.has_turn = False
        self.port = endpoint.port
        self.sockets: list[socket.socket] = []
        self._addresses: Sequence[str] = ()
        #: Connections that came in here and are still open.
        self.connections = 0
        #: Handshakes of TLS that have ended well, and those that have not.
        self.handshakes = 0
        self.failed_handshakes = 0
        self._accept = accept
        self._accepting = False

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def address(self) -> tuple[str, int]:
        """Host as configured, and the port that is really bound."""
        return self.endpoint.host, self.port

    def bind(self, addresses: Addresses, limits: ListenerLimits) -> None:
        """Bind the address; clients that connect are refused until `listen`.

        Raises:
            OSError: the address cannot be bound.
        """
        self._addresses = [host for _, (host, _) in addresses]
        try:
            for family, (host, _) in addresses:
                self.sockets.append(bound_socket(family, (host, self.port), limits))
                self.port = self.sockets[0].getsockname()[1]
        except OSError as error:
            if not self.sockets or self.endpoint.port:
                self._cannot_bind(error)
            # The system chose the port for the host's first address, but at another address of the host the
            # port is taken: listening at the first address is enough.

    def listen(self, limits: ListenerLimits) -> None:
        """Let connections queue up.

        Raises:
            OSError: another process listens here since `bind`.
        """
        try:
            for sock in self.sockets:
                sock.listen(max(limits.socket_listen_backlog_size, MIN_BACKLOG))
        except OSError as error:
            self._cannot_bind(error)

    def _cannot_bind(self, error: OSError) -> NoReturn:
        self.close()
        text = f"Socket server failed to bind to {shown(self.endpoint.host, self.port)}: {error.strerror}"
        if error.errno == errno.EADDRINUSE:
            text += _who_and_where_else(self.endpoint.host, self.port, self._addresses)
        raise OSError(error.errno, text) from error

    @property
    def is_closed(self) -> bool:
        """Whether it is closed, or not bound yet."""
        return not self.sockets

    @property
    def is_accepting(self) -> bool:
        """Whether clients that connect are accepted."""
        return self._accepting

    def start(self) -> None:
        """Accept connections."""
        if not self._accepting:
            self._accepting = True
            loop = asyncio.get_running_loop()
            for sock in self.sockets:
                loop.add_reader(sock.fileno(), self._accept, self, sock)

    def pause(self) -> None:
        """Let connections wait in the listen queue."""
        if self._accepting:
            self._accepting = False
            loop = asyncio.get_running_loop()
            for sock in self.sockets:
                loop.remove_reader(sock.fileno())

    def close(self) -> None:
        """Listen no more."""
        self.pause()
        for sock in self.sockets:
            sock.close()
        self.sockets = []


def _who_and_where_else(host: str, port: int, addresses: Sequence[str]) -> str:
    """The end of an error message: the process that has the port, if known, and a free port."""
    from pykafka_broker.system.processes import described, listening_on

    found = next((owner for a in addresses if (owner := listening_on(a, port)) is not None), None)
    by = "" if found is None else f" by {described(found)}"
    free = _free_port(host, port)
    return f"{by}. Port {free} is free: start with --listen {shown(host, free)}, or change `listeners`"


def _free_port(host: str, taken: int) -> int:
    """The first of the next `PORTS_TRIED` ports that can be bound now; else any free port."""
    family, (address, _) = next(iter(addresses_of(host, taken)))
    for port in (*range(taken + 1, min(taken + PORTS_TRIED, 65_535) + 1), 0):
        with suppress(OSError), bound_socket(family, (address, port), ListenerLimits()) as sock:
            sock.listen(1)
            free: int = sock.getsockname()[1]
            return free
    return 0


def bound_socket(
    family: socket.AddressFamily, address: tuple[str, int], limits: ListenerLimits
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            # On Windows the option means that two processes may listen on the same port.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        if limits.socket_receive_buffer_bytes > 0:
            # Before listen(2), so that the window is negotiated with it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.socket_receive_buffer_bytes)
        sock.bind(address)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
