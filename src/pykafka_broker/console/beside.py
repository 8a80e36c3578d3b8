"""The console that a broker serves (`console.listeners`): in a thread of its own, as a client of the broker.

The console uses a listener with SASL if the broker has one, and visitors log in. So an open listener for
brokers does not bypass the login.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from pykafka_broker.broker.node import Node
from pykafka_broker.cli.explain.history import WITHIN_S, OwnHistory
from pykafka_broker.cli.own_listener import most_closed, own_listeners
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.security import security_of
from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.properties_file import read_properties
from pykafka_broker.config.providers import resolved
from pykafka_broker.console.server import bound, server
from pykafka_broker.console.settings import Settings
from pykafka_broker.machine.history import Kind
from pykafka_broker.metrics.explanations import explained

logger = logging.getLogger("pykafka_broker.console")


def settings_of(config: BrokerConfig, port_of: Callable[[str], int]) -> Settings:
    """The console of a broker; `port_of` tells the port of a listener, which is 0 if any free one will do.

    Raises:
        ConfigError, OSError: the properties of `console.command.config` cannot be used.
    """
    listener = most_closed(own_listeners(config))
    properties: Mapping[str, str] = {}
    if (file := config["console.command.config"]) is not None:
        properties = resolved(read_properties(file), os.environ)
    try:
        security = security_of(
            {**properties, "security.protocol": "SSL" if listener.with_tls else "PLAINTEXT"}
        )
    except ValueError as error:
        raise ConfigError(f"console.command.config: {error}") from None
    hosts = [endpoint.host for endpoint in config.console_listeners]
    return Settings(
        f"{listener.address.host}:{port_of(listener.name)}",
        security=security,
        write=config["console.write"],
        host=hosts[0],
        port=config.console_listeners[0].port,
        host_names=(*hosts[1:], *config["console.host.names"]),
    )


def history_of(node: Node, loop: asyncio.AbstractEventLoop) -> OwnHistory:
    """The history of a node, for other threads than that of its event loop."""

    async def explanation(kind: Kind, name: str) -> dict[str, Any]:
        return explained(node.measured, kind, name)

    def tell(kind: Kind, name: str) -> dict[str, Any]:
        return asyncio.run_coroutine_threadsafe(explanation(kind, name), loop).result(WITHIN_S)

    return OwnHistory(node.foundation.node_id, tell)


class Beside:
    """Serves while it is entered."""

    def __init__(self, config: BrokerConfig, node: Node) -> None:
        """Bind the addresses. Called on the event loop of the node.

        Raises:
            ConfigError, OSError: an address is taken, or the console cannot reach its broker.
        """
        served = node.served_listeners.registered()
        settings = settings_of(config, lambda name: served[name].port)
        settings = settings._replace(history=history_of(node, asyncio.get_running_loop()))
        self._sockets = [bound(endpoint.host, endpoint.port) for endpoint in config.console_listeners]
        #: Where it serves: `host:port`.
        self.addresses = [str(Address(*taken.getsockname()[:2])) for taken in self._sockets]
        self._server = server(settings._replace(port=self._sockets[0].getsockname()[1]))
        self._thread = threading.Thread(
            target=self._server.run, args=(self._sockets,), name="console", daemon=True
        )

    async def __aenter__(self) -> Self:
        self._thread.start()
        logger.info("Console at %s", ", ".join(self.addresses))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        await asyncio.to_thread(self._thread.join)
