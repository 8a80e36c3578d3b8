"""All listeners of a broker, and the address each advertises.

A listener (`listening.py`) has sockets; who may connect is decided in `accepting.py`; `sweeping.py` closes
connections whose peers take too long.

A listener advertises its address in `advertised.listeners`, else its bound host. Bound to a wildcard address,
which Kafka refuses to advertise, it advertises to each client the address at which that client reached it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection, Mapping
from functools import partial

from pykafka_broker.apis.ports.connection import ClientConnection
from pykafka_broker.network.accepting import Acceptor
from pykafka_broker.network.addresses import Addresses, addresses_of
from pykafka_broker.network.connection_factory import OpenConnection
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.listening import Listener, ListenerService
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.sweeping import Sweep
from pykafka_broker.quotas.connection_rates import ConnectionRate
from pykafka_broker.quotas.rates import Window
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.system.ordered_set import OrderedSet

logger = logging.getLogger("kafka.network.SocketServer")


class Listeners:
    """All listeners of a broker, and the connections that came in through them."""

    def __init__(
        self,
        shared: Shared,
        limits: ListenerLimits | None = None,
        open_file_limit: int | None = None,
        reserve: DescriptorReserve | None = None,
        quota_window: Window = Window(),  # noqa: B008
    ) -> None:
        self.shared = shared
        reserve = DescriptorReserve() if reserve is None else reserve
        limits = ListenerLimits() if limits is None else limits
        self.listeners: dict[str, Listener] = {}
        self.acceptor = Acceptor(shared, self.listeners, limits, open_file_limit, reserve, quota_window)
        self._quota_window = quota_window
        self._sweep = Sweep(shared, reserve)

    @property
    def limits(self) -> ListenerLimits:
        """The limits in force."""
        return self.acceptor.limits

    def reserve(
        self,
        endpoint: ListenerEndpoint,
        service: ListenerService,
        addresses: Addresses | None = None,
    ) -> Listener:
        """Bind another listener, so that no other process can take its address; `add` makes it listen.

        `addresses` are those of its host; without them they are looked up, which may block.

        Raises:
            OSError: the address cannot be bound.
        """
        listener = Listener(endpoint, service, self.acceptor.accept, ConnectionRate(self._quota_window))
        listener.bind(addresses or addresses_of(endpoint.host, endpoint.port), self.limits)
        self.listeners[endpoint.name] = listener
        return listener

    def add(
        self,
        endpoint: ListenerEndpoint,
        service: ListenerService,
        addresses: Addresses | None = None,
    ) -> Listener:
        """Make another listener, reserved or not, listen; clients queue up there until `start()`.

        Raises:
            OSError: see `reserve`.
        """
        listener = self.listeners.get(endpoint.name) or self.reserve(endpoint, service, addresses)
        try:
            listener.listen(self.limits)
        except OSError:
            del self.listeners[endpoint.name]
            raise
        return listener

    def remove(self, name: str) -> None:
        """Close a listener; its connections are closed when the requests they have started are answered."""
        self.listeners.pop(name).close()
        for connection in list(self.shared.connections):
            if connection.listener_name == name:
                connection.finish()

    def start(self, serves: str, names: Collection[str] | None = None) -> None:
        """Accept connections on the listeners of kind `serves`, or on those of them in `names`.

        The parts that their handlers use must exist.
        """
        for listener in self.listeners.values():
            is_meant = listener.endpoint.serves == serves and (names is None or listener.name in names)
            if is_meant and not listener.is_accepting:
                listener.start()
                logger.info("Awaiting socket connections on %s:%d (%s)", *listener.address, listener.name)
        self._sweep.start()

    def stop_accepting(self, serves: str | None = None) -> None:
        """Close the listening sockets, of one kind of listener or of all; open connections go on."""
        if serves is None:
            self.acceptor.stop()
        for listener in self.listeners.values():
            if serves in (None, listener.endpoint.serves):
                listener.close()

    def break_off(self) -> None:
        """Close all listeners and abort all connections, as the end of the process would."""
        self.stop_accepting()
        self.acceptor.break_off_handshakes()
        for connection in list(self.shared.connections):
            connection.abort()

    async def hang_up(self, serves: str, grace_ms: int) -> None:
        """Close the listeners of kind `serves`; a connection is closed when the requests it has started are
        answered, after `grace_ms` at the latest.
        """
        self.stop_accepting(serves)
        names = {name for name, one in self.listeners.items() if one.endpoint.serves == serves}
        await self._end([one for one in self.shared.connections if one.listener_name in names], grace_ms)

    async def stop(self, grace_ms: int) -> None:
        """As `hang_up`, for all listeners; also stop the sweep and break off unfinished handshakes."""
        self.stop_accepting()
        self._sweep.stop()
        await asyncio.gather(*self.acceptor.break_off_handshakes(), return_exceptions=True)
        await self._end(list(self.shared.connections), grace_ms)

    async def _end(self, ending: list[OpenConnection], grace_ms: int) -> None:
        for connection in ending:
            connection.finish()
        connections = OrderedSet(dict.fromkeys(one for one in ending if one in self.shared.connections))
        all_closed = asyncio.Event()

        def closed(connection: OpenConnection) -> None:
            connections.discard(connection)
            if not connections:
                all_closed.set()

        for connection in connections:
            connection.on_close(partial(closed, connection))
        clock = self.shared.clock
        timer = clock.call_at(clock.monotonic_ms() + grace_ms, all_closed.set)
        if connections:
            await all_closed.wait()
        timer.cancel()
        for connection in list(connections):
            connection.abort()
        # Aborted connections are reported lost in the next turn of the loop.
        await asyncio.sleep(0)

    def reconfigure(self, limits: ListenerLimits, endpoints: Mapping[str, ListenerEndpoint]) -> None:
        """Apply changed limits and endpoints to connections to come; all listeners stay bound."""
        for name, listener in self.listeners.items():
            listener.endpoint = endpoints[name]
        self.acceptor.reconfigure(limits)

    def limit_addresses(self, overrides: Mapping[str, int]) -> None:
        """Apply changed `max.connections.per.ip.overrides`, by address, to connections to come."""
        self.acceptor.limits = self.limits._replace(max_connections_per_ip_overrides=overrides)

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
        """Host and port to register for a listener; a wildcard host registers the name of this machine."""
        listener = self.listeners[name]
        endpoint = listener.endpoint
        host = endpoint.advertised_host or (socket.gethostname() if endpoint.is_wildcard else endpoint.host)
        return host, endpoint.advertised_port or listener.port
