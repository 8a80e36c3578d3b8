"""Where clients come in: several listeners, the address each advertises, and who may connect.

Sockets are accepted here and then handed to the event loop, because Kafka's limits apply before a connection
exists: above `max.connections` new clients wait in the listen queue until somebody leaves (the inter-broker
listener is let in, and the least recently active connection elsewhere makes room); above
`max.connections.per.ip` they are closed at once; faster than `max.connection.creation.rate` they wait their
turn. When the process has no file descriptor left, new clients are closed at once with one line in the log;
some descriptors are kept free for log segments by bounding `max.connections` by the limit of the process at
the start, and some are kept in reserve (descriptors.py) in case that limit is lowered later.

Advertised addresses: what `advertised.listeners` says; else the bound host; and for a listener bound to a
wildcard address, which Kafka would refuse to advertise, the address at which the asking client itself reached
us.

One sweep serves all deadlines of all connections; there is no timer per connection.

Left for later on purpose: TLS and SASL; a `security_protocol` other than PLAINTEXT is refused at start.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, NoReturn

from pykafka_broker.apis.ports.connection import ClientConnection
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.machine.clock import Timer
from pykafka_broker.network.connection import Connection, plain_address
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.shared import Shared
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS, DescriptorReserve

logger = logging.getLogger("kafka.network.SocketServer")

UNLIMITED = 2**31 - 1
#: Descriptors kept for log segments, sockets to other nodes and the like.
RESERVED_FILES = 256
#: Connections accepted in one turn of the event loop.
ACCEPTS_PER_TURN = 64
#: The listen queue is never shorter: clients of a burst that do not fit in wait a second for another SYN.
MIN_BACKLOG = 1024
#: How long accepting pauses after it failed.
ACCEPT_PAUSE_MS = 250
#: How often connections are looked at; deadlines are this exact.
SWEEP_MS = 1_000
#: How often while unsent answers take all the memory they may.
HURRIED_SWEEP_MS = 250
#: Ports above a taken one that are looked at for one to propose.
PORTS_TRIED = 20
#: Addresses of a host, each with its family.
Addresses = Sequence[tuple[socket.AddressFamily, tuple[str, int]]]
#: Errors of accept(2) that concern only the connection that was about to be.
_PEERS_FAULT = {
    errno.ECONNABORTED,
    errno.EPROTO,
    errno.EPERM,
    errno.ENETDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
}


class Endpoint(NamedTuple):
    """One entry of `listeners`, and what `advertised.listeners` says about it."""

    name: str
    #: "" is every address of the machine.
    host: str
    #: 0 lets the system choose.
    port: int
    security_protocol: str = "PLAINTEXT"
    advertised_host: str | None = None
    advertised_port: int | None = None
    #: The inter-broker listener gets in above `max.connections` and `max.connection.creation.rate`.
    inter_broker: bool = False
    #: This listener's own `max.connections`, which counts beside the broker's.
    max_connections: int = UNLIMITED
    #: This listener's own `max.connection.creation.rate`, in connections per second, beside the broker's.
    max_connection_creation_rate: int = UNLIMITED

    @property
    def is_wildcard(self) -> bool:
        """True if the host names every address of the machine, so that it says nothing to a client."""
        return self.host in ("", "0.0.0.0", "::")

    def is_bound_as(self, other: Endpoint) -> bool:
        """True if the same sockets serve both."""
        return (self.host, self.port, self.security_protocol) == (
            other.host,
            other.port,
            other.security_protocol,
        )


class ListenerLimits(NamedTuple):
    """Who may connect; fields are Kafka's keys."""

    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    #: Connections per second.
    max_connection_creation_rate: int = UNLIMITED
    #: Address to count, already resolved.
    max_connections_per_ip_overrides: Mapping[str, int] = {}
    socket_listen_backlog_size: int = 50
    #: -1 leaves the size, and its tuning, to the system.
    socket_send_buffer_bytes: int = -1
    socket_receive_buffer_bytes: int = -1


class Listener:
    """One endpoint: its listening sockets and its share of the connections."""

    def __init__(self, listeners: Listeners, endpoint: Endpoint, dispatch: Dispatch) -> None:
        self.endpoint = endpoint
        self.dispatch = dispatch
        self.rate = CreationRate(endpoint.max_connection_creation_rate, listeners.shared.clock.monotonic_ms())
        self.port = endpoint.port
        self.sockets: list[socket.socket] = []
        self._addresses: Sequence[str] = ()
        #: Connections that came in here and are still open.
        self.connections = 0
        self._listeners = listeners
        self._accepting = False

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def address(self) -> tuple[str, int]:
        """Host as configured, and the port that is really bound."""
        return self.endpoint.host, self.port

    def bind(self, addresses: Addresses, limits: ListenerLimits) -> None:
        """Take the address; who connects is refused until `listen`.

        Raises:
            OSError: the address cannot be had.
        """
        self._addresses = [host for _, (host, _) in addresses]
        try:
            for family, (host, _) in addresses:
                self.sockets.append(_bound_socket(family, (host, self.port), limits))
                self.port = self.sockets[0].getsockname()[1]
        except OSError as error:
            if not self.sockets or self.endpoint.port:
                self._cannot_bind(error)
            # The port that the system chose for the host's first address is taken at another: the first will
            # do.

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
        text = f"Socket server failed to bind to {_shown(self.endpoint.host, self.port)}: {error.strerror}"
        if error.errno == errno.EADDRINUSE:
            text += _who_and_where_else(self.endpoint.host, self.port, self._addresses)
        raise OSError(error.errno, text) from error

    def start(self) -> None:
        """Accept connections."""
        if not self._accepting:
            self._accepting = True
            loop = asyncio.get_running_loop()
            for sock in self.sockets:
                loop.add_reader(sock.fileno(), self._accept, sock)

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

    def _accept(self, sock: socket.socket) -> None:
        listeners = self._listeners
        for _ in range(ACCEPTS_PER_TURN):
            if not listeners.has_room(self) or listeners.is_too_fast(self):
                return
            try:
                accepted = listeners.next_client(sock)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _PEERS_FAULT:
                    continue
                listeners.accept_failed(self, error)
                return
            if accepted is not None:
                listeners.accepted(self, *accepted)


class CreationRate:
    """Counts connections against a rate; what a second allows may come at once."""

    def __init__(self, per_second: int, now_ms: int) -> None:
        self.per_second = per_second
        self._allowed = float(per_second)
        self._counted_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """After how many milliseconds the next connection may come: 0 is now."""
        rate = self.per_second
        self._allowed = min(rate, self._allowed + (now_ms - self._counted_ms) * rate / 1000)
        self._counted_ms = now_ms
        if self._allowed >= 1:
            return 0
        return max(1, int((1 - self._allowed) * 1000 / rate)) if rate else 1_000

    def count(self) -> None:
        """A connection came, as `wait_ms` had allowed."""
        self._allowed -= 1

    def changed_to(self, per_second: int, now_ms: int) -> CreationRate:
        """What counts from now on; the same rate goes on where it was."""
        return self if per_second == self.per_second else CreationRate(per_second, now_ms)


class Listeners:
    """All listeners of a broker, and the connections that came in through them."""

    def __init__(
        self,
        shared: Shared,
        limits: ListenerLimits | None = None,
        open_file_limit: int | None = None,
        reserve: DescriptorReserve | None = None,
    ) -> None:
        self.shared = shared
        self.limits = limits if limits is not None else ListenerLimits()
        self.listeners: dict[str, Listener] = {}
        self._open_file_limit = open_file_limit
        self._reserve = DescriptorReserve() if reserve is None else reserve
        self._rate = CreationRate(self.limits.max_connection_creation_rate, shared.clock.monotonic_ms())
        self._per_ip: dict[str, int] = {}
        self._count = 0
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting_for_room: set[Listener] = set()
        self._sweep_timer: Timer | None = None
        self._stopping = False

    @property
    def max_connections(self) -> int:
        """The limit in force: what is configured, and what the process has descriptors for."""
        configured = self.limits.max_connections
        if self._open_file_limit is None:
            return configured
        return min(configured, max(self._open_file_limit - RESERVED_FILES, self._open_file_limit // 2))

    def reserve(self, endpoint: Endpoint, dispatch: Dispatch, addresses: Addresses | None = None) -> Listener:
        """Bind another listener, so that its address cannot be lost any more; `add` makes it listen.

        `addresses` are those of its host; without them they are looked up, which may block.

        Raises:
            OSError: the address cannot be had.
            ValueError: the security protocol is not offered.
        """
        if endpoint.security_protocol != "PLAINTEXT":
            raise ValueError(
                f"Listener {endpoint.name}: security protocol {endpoint.security_protocol} is not offered, "
                "only PLAINTEXT is"
            )
        listener = Listener(self, endpoint, dispatch)
        listener.bind(addresses or addresses_of(endpoint.host, endpoint.port), self.limits)
        self.listeners[endpoint.name] = listener
        return listener

    def add(self, endpoint: Endpoint, dispatch: Dispatch, addresses: Addresses | None = None) -> Listener:
        """Let another listener, reserved or not, have connections queue up; it accepts after `start()`.

        Raises:
            OSError, ValueError: see `reserve`.
        """
        listener = self.listeners.get(endpoint.name) or self.reserve(endpoint, dispatch, addresses)
        try:
            listener.listen(self.limits)
        except OSError:
            del self.listeners[endpoint.name]
            raise
        return listener

    def remove(self, name: str) -> None:
        """Listen there no more; its connections finish what they have started, then they are closed."""
        self.listeners.pop(name).close()
        for connection in list(self.shared.connections):
            if connection.listener_name == name:
                connection.finish()

    def start(self, node: NodePorts) -> None:
        """Accept connections on every listener, whose handlers ask `node` for what they need."""
        self.shared.node = node
        for listener in self.listeners.values():
            listener.start()
            logger.info("Awaiting socket connections on %s:%d (%s)", *listener.address, listener.name)
        self._schedule_sweep()

    def stop_accepting(self) -> None:
        """Close the listening sockets; open connections go on."""
        self._stopping = True
        for listener in self.listeners.values():
            listener.close()

    async def stop(self, grace_ms: int) -> None:
        """Let every connection finish what it has started, for at most `grace_ms`, then close it."""
        self.stop_accepting()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        connections = self.shared.connections
        for connection in list(connections):
            connection.finish()
        all_closed = asyncio.Event()

        def one_closed() -> None:
            if not connections:
                all_closed.set()

        for connection in connections:
            connection.on_close(one_closed)
        clock = self.shared.clock
        timer = clock.call_at(clock.monotonic_ms() + grace_ms, all_closed.set)
        if connections:
            await all_closed.wait()
        timer.cancel()
        for connection in list(connections):
            connection.abort()
        # Aborted connections are reported lost in the next turn of the loop.
        await asyncio.sleep(0)

    def reconfigure(self, limits: ListenerLimits, endpoints: Mapping[str, Endpoint]) -> None:
        """Apply changed limits and changed endpoints, which stay bound, to connections to come."""
        self.limits = limits
        now_ms = self.shared.clock.monotonic_ms()
        self._rate = self._rate.changed_to(limits.max_connection_creation_rate, now_ms)
        for name, listener in self.listeners.items():
            listener.endpoint = endpoint = endpoints[name]
            listener.rate = listener.rate.changed_to(endpoint.max_connection_creation_rate, now_ms)
        self._let_wait_end()

    def advertised_for(self, connection: ClientConnection) -> tuple[str, int]:
        """Host and port under which the client of `connection` can reach this broker again."""
        listener = self.listeners.get(connection.listener_name)
        if listener is None:  # removed meanwhile
            return connection.local_address
        endpoint = listener.endpoint
        port = endpoint.advertised_port or listener.port
        if endpoint.advertised_host:
            return endpoint.advertised_host, port
        if endpoint.is_wildcard:
            return connection.local_address[0], port
        return endpoint.host, port

    def advertised(self, name: str) -> tuple[str, int]:
        """Host and port to register for a listener; for a wildcard, with no client to ask, our name."""
        listener = self.listeners[name]
        endpoint = listener.endpoint
        host = endpoint.advertised_host or (socket.gethostname() if endpoint.is_wildcard else endpoint.host)
        return host, endpoint.advertised_port or listener.port

    # Accepting.

    def has_room(self, listener: Listener) -> bool:
        """True if another connection may be accepted; else the listener waits until one leaves."""
        most = listener.endpoint.max_connections
        if listener.connections < most:
            if self._count < self.max_connections:
                return True
            if self._is_privileged(listener):
                self._make_room()
                return True
            most = self.max_connections
        listener.pause()
        self._waiting_for_room.add(listener)
        self.shared.complaints.log(
            logging.INFO,
            "max.connections",
            listener.name,
            f"Listener {listener.name} lets new connections wait: no more than {most} may be open",
        )
        return False

    def is_too_fast(self, listener: Listener) -> bool:
        """True if the next connection must wait for its turn by `max.connection.creation.rate`.

        The broker's rate does not hold up the inter-broker listener, one of its own does.
        """
        rates = [listener.rate] if self._is_privileged(listener) else [listener.rate, self._rate]
        rates = [rate for rate in rates if rate.per_second != UNLIMITED]
        if not rates:
            return False
        clock = self.shared.clock
        now_ms = clock.monotonic_ms()
        wait_ms = max(rate.wait_ms(now_ms) for rate in rates)
        if wait_ms:
            listener.pause()
            clock.call_at(now_ms + wait_ms, listener.start)
            return True
        for rate in rates:
            rate.count()
        return False

    def _is_privileged(self, listener: Listener) -> bool:
        return listener.endpoint.inter_broker and len(self.listeners) > 1

    def next_client(self, sock: socket.socket) -> tuple[socket.socket, tuple[str, int]] | None:
        """Accept a client; None if it was turned away because there is no descriptor for it.

        Raises:
            OSError: no client waits any more, or accepting failed.
        """
        # Before the reserve is whole again, a client would take what was freed for logs.
        if self._reserve.refill():
            try:
                client: tuple[socket.socket, tuple[str, int]] = sock.accept()
                return client
            except OSError as error:
                if error.errno not in EXHAUSTED_ERRORS:
                    raise
        self._reserve.lend()
        try:
            # Else it would wait until its own time-out.
            sock.accept()[0].close()
        finally:
            self._reserve.refill()
        self.shared.counters.connections_rejected += 1
        self.complain_of_descriptors()
        return None

    def complain_of_descriptors(self) -> None:
        """Say, once in a while, that the process is out of descriptors."""
        self.shared.complaints.log(
            logging.ERROR,
            "descriptors",
            "",
            "This process has no file descriptor left: new connections are closed at once; raise the limit "
            "of open files (ulimit -n)",
        )

    def accepted(self, listener: Listener, client: socket.socket, address: tuple[str, int]) -> None:
        """A client came in: count it, or send it away."""
        peer = plain_address(address[0]), address[1]
        host = peer[0]
        most = self.limits.max_connections_per_ip_overrides.get(host, self.limits.max_connections_per_ip)
        if self._per_ip.get(host, 0) >= most:
            client.close()
            self.shared.counters.connections_rejected += 1
            self.shared.complaints.log(
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
        task.add_done_callback(self._opening.discard)

    async def _open(self, listener: Listener, client: socket.socket, peer: tuple[str, int]) -> None:
        connection = Connection(
            self.shared,
            listener.dispatch,
            listener.name,
            peer,
            lambda connection: self._forget(listener, connection.peer_host),
        )
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.limits.socket_send_buffer_bytes > 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.socket_send_buffer_bytes)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: connection, client)
        except OSError as error:
            # Gone before it was here.
            logger.debug("Connection from %s:%d failed: %s", *peer, error)
            client.close()
            self._forget(listener, peer[0])
            return
        if self._stopping:
            connection.finish()

    def accept_failed(self, listener: Listener, error: OSError) -> None:
        """accept(2) failed for want of a resource: try again in a moment instead of turning in circles."""
        listener.pause()
        self.shared.complaints.log(
            logging.ERROR,
            "accept",
            listener.name,
            f"Listener {listener.name} cannot accept connections ({error.strerror}); trying again",
        )
        clock = self.shared.clock
        clock.call_at(clock.monotonic_ms() + ACCEPT_PAUSE_MS, listener.start)

    def _forget(self, listener: Listener, host: str) -> None:
        self._count -= 1
        listener.connections -= 1
        left = self._per_ip[host] - 1
        if left:
            self._per_ip[host] = left
        else:
            del self._per_ip[host]
        if self._waiting_for_room:
            self._let_wait_end()

    def _let_wait_end(self) -> None:
        if not self._stopping:
            waiting, self._waiting_for_room = self._waiting_for_room, set()
            for listener in waiting:
                listener.start()

    def _make_room(self) -> None:
        """Close the connection that was idle longest, if one came in elsewhere than between brokers."""
        candidates = [
            connection
            for connection in self.shared.connections
            if (listener := self.listeners.get(connection.listener_name)) is not None
            and not listener.endpoint.inter_broker
        ]
        if candidates:
            idlest = min(candidates, key=lambda connection: connection.idle_since_ms)
            logger.info("Closing %r to make room for a connection of the inter-broker listener", idlest)
            idlest.abort()

    # The sweep.

    def _schedule_sweep(self) -> None:
        limits = self.shared.limits
        shortest = min(
            limits.idle_ms if limits.idle_ms >= 0 else SWEEP_MS * 4,
            limits.request_arrival_ms,
            limits.stalled_ms,
        )
        interval_ms = HURRIED_SWEEP_MS if self.shared.unsent.full else SWEEP_MS
        clock = self.shared.clock
        self._sweep_timer = clock.call_at(
            clock.monotonic_ms() + max(10, min(interval_ms, shortest // 4)), self._sweep
        )

    def _sweep(self) -> None:
        """Look at every connection once."""
        self._reserve.refill()
        now_ms = self.shared.clock.monotonic_ms()
        for connection in list(self.shared.connections):
            connection.check(now_ms)
        unsent = self.shared.unsent
        if unsent.full:
            self._drop_slow_readers(now_ms)
        self._schedule_sweep()

    def _drop_slow_readers(self, now_ms: int) -> None:
        """Too many answers wait for peers that do not read; those with most to read and no progress go."""
        unsent = self.shared.unsent
        stalled = [
            connection
            for connection in self.shared.connections
            if connection.stalled_since_ms is not None and connection.stalled_since_ms < now_ms
        ]
        excess_bytes = unsent.used_bytes - unsent.limit_bytes // 2
        for connection in sorted(stalled, key=lambda connection: -connection.unsent_bytes):
            if excess_bytes <= 0:
                break
            excess_bytes -= connection.unsent_bytes
            connection.drop_unread()


def addresses_of(host: str, port: int) -> Addresses:
    """What to bind for `host`: every address it has, IPv4 first; "" is one socket for both, if possible.

    May wait for a resolver.
    """
    if not host:
        if socket.has_dualstack_ipv6():
            return [(socket.AF_INET6, ("::", port))]
        return [(socket.AF_INET, ("0.0.0.0", port))]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = {(family, (str(address[0]), port)) for family, _, _, _, address in found}
    return sorted(addresses, key=lambda item: item[0] != socket.AF_INET)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _who_and_where_else(host: str, port: int, addresses: Sequence[str]) -> str:
    """Who has a port, as far as that can be told, and which one is free, as the end of a sentence."""
    from pykafka_broker.system.processes import described, listening_on

    found = next((owner for a in addresses if (owner := listening_on(a, port)) is not None), None)
    by = "" if found is None else f" by {described(found)}"
    free = _free_port(host, port)
    return f"{by}. Port {free} is free: start with --listen {_shown(host, free)}, or change `listeners`"


def _free_port(host: str, taken: int) -> int:
    """The next port above that can be bound now; any one if none of the next ones can."""
    family, (address, _) = next(iter(addresses_of(host, taken)))
    for port in (*range(taken + 1, min(taken + PORTS_TRIED, 65_535) + 1), 0):
        with suppress(OSError), _bound_socket(family, (address, port), ListenerLimits()) as sock:
            sock.listen(1)
            free: int = sock.getsockname()[1]
            return free
    return 0


def _bound_socket(
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
