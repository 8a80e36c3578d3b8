"""Letting clients in, as far as Kafka's limits allow.

Sockets are accepted here and then handed to the event loop, because the limits apply before a connection
exists. Above `max.connections` new clients wait in the listen queue until a connection closes. Clients of the
inter-broker listener do not wait: the least recently active connection of another listener is closed instead.
Above `max.connections.per.ip` clients are closed at once, above `max.connection.creation.rate` they wait, and
above the quota of their address they are closed after a wait (`quotas/connection_rates.py`).

When the process has no file descriptor left, new clients are closed at once with one line in the log. Some
descriptors are kept free for log segments by bounding `max.connections` by the limit of the process at the
start, and some are kept in reserve (system/descriptors.py) in case that limit is lowered later.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Mapping
from functools import partial

from pykafka_broker.network.addresses import plain_address
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.network.endpoint import ListenerLimits
from pykafka_broker.network.listening import Listener
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import HandshakeFailed, Tls
from pykafka_broker.quotas.connection_rates import AddressRates, ConnectionRate
from pykafka_broker.quotas.rates import Window
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS, DescriptorReserve
from pykafka_broker.system.ordered_set import OrderedSet

logger = logging.getLogger("kafka.network.SocketServer")

#: Descriptors kept for log segments, sockets to other nodes and the like.
RESERVED_FILES = 256
#: Connections accepted in one turn of the event loop.
ACCEPTS_PER_TURN = 64
#: The pause of accepting after it failed.
ACCEPT_PAUSE_MS = 250
#: The most clients above the quota of their address that wait to be closed; others are closed at once.
MOST_DELAYED = 1_000
#: Errors of accept(2) that concern only the connection to be accepted.
_PEERS_FAULT = {
    errno.ECONNABORTED,
    errno.EPROTO,
    errno.EPERM,
    errno.ENETDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
}


class Acceptor:
    """Accepts the clients of all listeners of a broker; `listeners` has them by name."""

    def __init__(
        self,
        shared: Shared,
        listeners: Mapping[str, Listener],
        limits: ListenerLimits,
        open_file_limit: int | None,
        reserve: DescriptorReserve,
        quota_window: Window,
    ) -> None:
        self.limits = limits
        #: Listeners whose next clients wait until a connection closes.
        self.waiting_for_room: OrderedSet[Listener] = OrderedSet()
        self._shared = shared
        self._listeners = listeners
        self._open_file_limit = open_file_limit
        self._reserve = reserve
        self._rate = ConnectionRate(quota_window)
        self._per_ip: dict[str, int] = {}
        self._count = 0
        self._opening: OrderedSet[asyncio.Task[None]] = OrderedSet()
        #: The quotas of single addresses; the follower of the metadata keeps them up to date.
        self.address_rates = AddressRates(quota_window)
        #: Clients above the quota of their address that wait to be closed.
        self._delayed: OrderedSet[socket.socket] = OrderedSet()
        self._is_stopping = False

    @property
    def max_connections(self) -> int:
        """The limit in force: the configured one, or that of the process's descriptors if it is lower."""
        configured = self.limits.max_connections
        if self._open_file_limit is None:
            return configured
        return min(configured, max(self._open_file_limit - RESERVED_FILES, self._open_file_limit // 2))

    @property
    def opening(self) -> int:
        """Connections whose handshakes are not over."""
        return len(self._opening)

    def stop(self) -> None:
        """Accept no more clients; connections in their handshakes will serve no request."""
        self._is_stopping = True
        for client in tuple(self._delayed):
            self._send_away(client)

    def break_off_handshakes(self) -> list[asyncio.Task[None]]:
        """Close connections in their handshakes; returns the tasks that this ends."""
        ending = list(self._opening)
        for task in ending:
            task.cancel()
        return ending

    def reconfigure(self, limits: ListenerLimits) -> None:
        """Apply changed limits, also those of the listeners' endpoints, to connections to come."""
        self.limits = limits
        self._let_wait_end()

    def accept(self, listener: Listener, sock: socket.socket) -> None:
        """Let in the clients that wait at a listener's socket."""
        for _ in range(ACCEPTS_PER_TURN):
            if not self._has_room(listener) or not self._has_turn(listener):
                return
            try:
                accepted = self._next_client(sock)
            except (BlockingIOError, InterruptedError):
                self._give_turn_back(listener)
                return
            except OSError as error:
                if error.errno in _PEERS_FAULT:
                    continue
                self._accept_failed(listener, error)
                return
            if accepted is not None:
                listener.has_turn = False
                self._accepted(listener, *accepted)

    def _has_room(self, listener: Listener) -> bool:
        """True if another connection may be accepted; else the listener waits until one closes."""
        most = listener.endpoint.max_connections
        if listener.connections < most:
            if self._count < self.max_connections:
                return True
            if self._is_privileged(listener):
                self._make_room()
                return True
            most = self.max_connections
        listener.pause()
        self.waiting_for_room.add(listener)
        self._shared.complaints.log(
            logging.INFO,
            "max.connections",
            listener.name,
            f"Listener {listener.name} lets new connections wait: no more than {most} may be open",
        )
        return False

    def _has_turn(self, listener: Listener) -> bool:
        """Count the next connection; False if it must wait for its turn by `max.connection.creation.rate`.

        The wait does not change when the limits do.
        """
        if listener.has_turn:
            return True
        listener.has_turn = True
        clock = self._shared.clock
        now_ms = clock.monotonic_ms()
        wait_ms = max(rate.count(bound, now_ms) for rate, bound in self._rates_of(listener))
        if wait_ms:
            listener.pause()
            clock.call_at(now_ms + wait_ms, listener.start)
        return not wait_ms

    def _give_turn_back(self, listener: Listener) -> None:
        """Count one connection less: no client waited for its turn, or the client is not let in."""
        listener.has_turn = False
        now_ms = self._shared.clock.monotonic_ms()
        for rate, _ in self._rates_of(listener):
            rate.take_back(now_ms)

    def _rates_of(self, listener: Listener) -> list[tuple[ConnectionRate, int]]:
        """The rates to which the connections of a listener count, each with its bound."""
        own = listener.rate, listener.endpoint.max_connection_creation_rate
        if self._is_privileged(listener):
            return [own]
        return [own, (self._rate, self.limits.max_connection_creation_rate)]

    def _is_privileged(self, listener: Listener) -> bool:
        return listener.endpoint.is_privileged and len(self._listeners) > 1

    def _next_client(self, sock: socket.socket) -> tuple[socket.socket, tuple[str, int]] | None:
        """Accept a client; None if it was closed because no file descriptor is left.

        Raises:
            OSError: no client waits any more, or accepting failed.
        """
        # Before the reserve is whole again, a client would take descriptors that were freed for logs.
        if self._reserve.refill():
            try:
                client: tuple[socket.socket, tuple[str, int]] = sock.accept()
                return client
            except OSError as error:
                if error.errno not in EXHAUSTED_ERRORS:
                    raise
        self._reserve.lend()
        try:
            # Unaccepted, the client would wait for its own time-out.
            sock.accept()[0].close()
        finally:
            self._reserve.refill()
        self._shared.counters.connections_rejected += 1
        self.complain_of_descriptors()
        return None

    def complain_of_descriptors(self) -> None:
        """Log, once per interval, that the process has no file descriptor left."""
        self._shared.complaints.log(
            logging.ERROR,
            "descriptors",
            "",
            "This process has no file descriptor left: new connections are closed at once; raise the limit "
            "of open files (ulimit -n)",
        )

    def _accepted(self, listener: Listener, client: socket.socket, address: tuple[str, int]) -> None:
        """Count an accepted client, or close it if its address has too many connections."""
        peer = plain_address(address[0]), address[1]
        host = peer[0]
        if self.address_rates.is_active and (
            wait_ms := self.address_rates.count(host, self._shared.clock.monotonic_ms())
        ):
            self._delay(listener, client, host, wait_ms)
            return
        most = self.limits.max_connections_per_ip_overrides.get(host, self.limits.max_connections_per_ip)
        if self._per_ip.get(host, 0) >= most:
            client.close()
            self._shared.counters.connections_rejected += 1
            self._shared.complaints.log(
                logging.INFO,
                "max.connections.per.ip",
                host,
                f"Rejected connection from {host}, address already has the configured maximum of {most} "
                "connections.",
            )
            return
        self._per_ip[host] = self._per_ip.get(host, 0) + 1
        self._count += 1
        listener.connections += 1
        task = asyncio.get_running_loop().create_task(self._open(listener, client, peer))
        self._opening.add(task)
        task.add_done_callback(partial(self._opened, listener, client, host))

    def _delay(self, listener: Listener, client: socket.socket, host: str, wait_ms: int) -> None:
        """Close a client above the quota of its address after a wait, as Apache Kafka does.

        The wait slows down a client that tries again at once. Above `MOST_DELAYED` there is no wait.
        """
        self._give_turn_back(listener)
        self._shared.counters.connections_rejected += 1
        self._shared.complaints.log(
            logging.INFO,
            "connection_creation_rate",
            host,
            f"Rejected connection from {host}, which makes more connections per second than its quota allows",
        )
        if len(self._delayed) >= MOST_DELAYED:
            client.close()
            return
        self._delayed.add(client)
        clock = self._shared.clock
        clock.call_at(clock.monotonic_ms() + wait_ms, partial(self._send_away, client))

    def _send_away(self, client: socket.socket) -> None:
        self._delayed.discard(client)
        client.close()

    async def _open(self, listener: Listener, client: socket.socket, peer: tuple[str, int]) -> None:
        accepted = Accepted(listener.name, peer, on_lost=partial(self._forget, listener, peer[0]))
        try:
            protocol, connection = listener.service.new_connection(accepted)
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.limits.socket_send_buffer_bytes > 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.socket_send_buffer_bytes)
            await listener.service.transport.open(protocol, client)
            listener.handshakes += isinstance(listener.service.transport, Tls)
        except OSError as error:
            if isinstance(error, HandshakeFailed):
                listener.failed_handshakes += 1
                self._shared.complaints.log(
                    logging.INFO,
                    "handshake",
                    peer[0],
                    f"Connection from {peer[0]} to listener {listener.name}: the handshake failed: {error}",
                )
            else:
                # The peer was gone before the transport opened.
                logger.debug("Connection from %s:%d failed: %s", *peer, error)
            client.close()
            self._forget(listener, peer[0])
            return
        except Exception as error:  # else it would stay counted
            text = f"Failed to serve the connection from {peer[0]} to listener {listener.name}"
            self._shared.complaints.log(logging.ERROR, type(error).__name__, listener.name, text, error)
            client.close()
            self._forget(listener, peer[0])
            return
        if self._is_stopping or listener.is_closed:
            connection.finish()

    def _opened(self, listener: Listener, client: socket.socket, host: str, task: asyncio.Task[None]) -> None:
        """Called when `_open` ends; closes the client if it was cancelled, perhaps before it began."""
        self._opening.discard(task)
        if task.cancelled():
            client.close()
            self._forget(listener, host)

    def _accept_failed(self, listener: Listener, error: OSError) -> None:
        """accept(2) failed for lack of a resource: try again after `ACCEPT_PAUSE_MS`, not in a busy loop."""
        listener.pause()
        self._shared.complaints.log(
            logging.ERROR,
            "accept",
            listener.name,
            f"Listener {listener.name} cannot accept connections ({error.strerror}); trying again",
        )
        clock = self._shared.clock
        clock.call_at(clock.monotonic_ms() + ACCEPT_PAUSE_MS, listener.start)

    def _forget(self, listener: Listener, host: str) -> None:
        self._count -= 1
        listener.connections -= 1
        left = self._per_ip[host] - 1
        if left:
            self._per_ip[host] = left
        else:
            del self._per_ip[host]
        if self.waiting_for_room:
            self._let_wait_end()

    def _let_wait_end(self) -> None:
        if not self._is_stopping:
            waiting, self.waiting_for_room = self.waiting_for_room, OrderedSet()
            for listener in waiting:
                listener.start()

    def _make_room(self) -> None:
        """Close the connection that has been idle longest on a listener that is not privileged, if any."""
        candidates = [
            connection
            for connection in self._shared.connections
            if (listener := self._listeners.get(connection.listener_name)) is not None
            and not listener.endpoint.is_privileged
        ]
        if candidates:
            idlest = min(candidates, key=lambda connection: connection.idle_since_ms)
            logger.info("Closing %r to make room for one of another broker or controller", idlest)
            idlest.abort()
