"""The listeners of this broker, kept in line with the configuration while it changes.

Addresses are reserved before directories are formatted, so that a start whose address is taken leaves nothing
behind. A changed listener is bound again; a changed limit applies to new connections. Host names are looked
up in the background; if the configuration changes again meanwhile, the later change applies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER
from pykafka_broker.broker.listener_kinds import ListenerKind
from pykafka_broker.broker.settings import endpoints, limits_by_address_or, listener_limits
from pykafka_broker.broker.threads import Threads
from pykafka_broker.cluster import image as metadata
from pykafka_broker.config import BrokerConfig
from pykafka_broker.network.addresses import addresses_of, shown
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.listening import Listener, ListenerService

logger = logging.getLogger("kafka.server.BrokerServer")

#: Kafka's numbers of the security protocols, for registrations.
SECURITY_PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class ServedListeners:
    """Binds, rebinds and removes listeners. Event loop only.

    `kinds` is the result of `listener_kinds`. `current` returns the configuration in force.
    """

    def __init__(
        self,
        listeners: Listeners,
        kinds: Mapping[str, ListenerKind],
        current: Callable[[], BrokerConfig],
        threads: Threads,
    ) -> None:
        self._listeners = listeners
        self._kinds = kinds
        self._current = current
        self._threads = threads
        #: Changes that wait for a host to be looked up.
        self._changes: set[asyncio.Task[None]] = set()

    @property
    def is_changing(self) -> bool:
        """Whether a change waits for a host to be looked up."""
        return bool(self._changes)

    def reserve_addresses(self) -> None:
        """Bind every address; clients that connect are refused until `listen`.

        Raises:
            OSError: an address cannot be bound.
        """
        for endpoint in endpoints(self._current()):
            self._listeners.reserve(endpoint, self._service(endpoint))

    async def listen(self, serves: str) -> None:
        """Let clients queue up on every listener of this kind, by the configuration in force.

        Raises:
            OSError: an address cannot be bound.
        """
        config = self._current()
        before = self._listeners.limits.max_connections_per_ip_overrides
        by_address = await limits_by_address_or(before, config)
        wanted = {endpoint.name: endpoint for endpoint in endpoints(config)}
        self._listeners.reconfigure(listener_limits(config, by_address), wanted)
        for endpoint in wanted.values():
            if endpoint.serves == serves:
                self._listeners.add(endpoint, self._service(endpoint))

    def stop(self) -> None:
        """Give up the changes that wait for a host."""
        for change in self._changes:
            change.cancel()

    def _service(self, endpoint: ListenerEndpoint) -> ListenerService:
        return self._kinds[endpoint.serves](endpoint)

    def _of(self, serves: str) -> dict[str, Listener]:
        listeners = self._listeners.listeners
        return {name: one for name, one in listeners.items() if one.endpoint.serves == serves}

    @property
    def has_controllers(self) -> bool:
        """Whether there are listeners of controllers."""
        return bool(self._of(CONTROLLER_LISTENER))

    def registered(self, serves: str = BROKER_LISTENER) -> dict[str, metadata.RegisteredEndpoint]:
        """The listeners of a kind as a broker or a controller registers them, by name."""
        return {
            name: metadata.RegisteredEndpoint(
                *self._listeners.advertised(name),
                SECURITY_PROTOCOL_NUMBERS[listener.endpoint.security_protocol],
            )
            for name, listener in self._of(serves).items()
        }

    @property
    def bootstrap_servers(self) -> str:
        """The address of the first listener for its clients: `host:port`.

        Raises:
            RuntimeError: the node does not have the role broker.
        """
        return self._address_of_first(BROKER_LISTENER)

    @property
    def controller_address(self) -> str:
        """The address of the first listener of controllers: `host:port`.

        Raises:
            RuntimeError: there is none.
        """
        return self._address_of_first(CONTROLLER_LISTENER)

    def _address_of_first(self, serves: str) -> str:
        name = next(iter(self._of(serves)), None)
        if name is None:
            raise RuntimeError(f"the node has no {serves} listener")
        return shown(*self._listeners.advertised(name))

    def reconfigure(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Apply the changes between two configurations."""
        listeners = self._listeners
        wanted = {endpoint.name: endpoint for endpoint in endpoints(new)}
        for name, listener in tuple(listeners.listeners.items()):
            if name not in wanted or not listener.endpoint.is_bound_as(wanted[name]):
                listeners.remove(name)
        by_address = listeners.limits.max_connections_per_ip_overrides
        listeners.reconfigure(listener_limits(new, by_address), wanted)
        if new.connections_per_ip_overrides != old.connections_per_ip_overrides:
            self._begin(self._limit_addresses(new))
        for name in wanted.keys() - listeners.listeners.keys():
            self._begin(self._add(wanted[name]))

    def _begin(self, change: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _add(self, endpoint: ListenerEndpoint) -> None:
        """Serve one more listener, if it is still configured after its host has been looked up."""
        listeners = self._listeners
        try:
            addresses = await self._threads.run_blocking(partial(addresses_of, endpoint.host, endpoint.port))
            if endpoint in endpoints(self._current()) and endpoint.name not in listeners.listeners:
                listeners.add(endpoint, self._service(endpoint), addresses).start()
        except (OSError, ValueError) as error:
            logger.error("Listener %s is not served: %s", endpoint.name, error)

    async def _limit_addresses(self, config: BrokerConfig) -> None:
        """Apply the limits of single addresses, unless they have changed again meanwhile."""
        listeners = self._listeners
        by_address = await limits_by_address_or(listeners.limits.max_connections_per_ip_overrides, config)
        if config.connections_per_ip_overrides == self._current().connections_per_ip_overrides:
            listeners.limit_addresses(by_address)
