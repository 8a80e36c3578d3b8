"""A broker for programs: start it, ask for its address, stop it.

    async with Broker(config) as broker:
        ...  # broker.bootstrap_servers

    with Broker(config) as broker:  # the same in a thread of its own
        ...

Many brokers can run in one process. The clock and the file layer are injected. `node.py` builds and starts
the parts of a broker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pykafka_broker.broker.foundation import Foundation, lay
from pykafka_broker.broker.node import Node, start_node
from pykafka_broker.broker.stop_order import Undo
from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.unheeded import name_static
from pykafka_broker.log.disk.files import FileSystem, OsFileSystem
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.protocol.errors import KafkaError

if TYPE_CHECKING:
    from pykafka_broker.broker.broker_thread import BrokerThread
    from pykafka_broker.broker.security.client_settings import ClientSettings
    from pykafka_broker.broker.security.declared import Security

NOT_STARTED = (
    "this broker has not been started: `async with broker`, `with broker` and `await broker.start()` start it"
)


class Broker:
    """One Kafka broker with its controller. It starts once and stops once.

    `security` is for a broker that is a cluster by itself, as `load_config` makes it without a file.

    Raises:
        ConfigError: the configuration is of a node of a cluster, and `security` is given.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        security: Security | None = None,
        clock: Clock | None = None,
        files: FileSystem | None = None,
    ) -> None:
        if not isinstance(config, BrokerConfig):
            raise TypeError(f"Broker takes what load_config() returns, not {type(config).__name__}")
        self.node_id = config.node_id
        self._security = security
        self._config = config if security is None else _secured(config, security)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._files: FileSystem = OsFileSystem() if files is None else files
        #: The foundation of all parts, made first in a start.
        self._foundation: Foundation | None = None
        self._node: Node | None = None
        self._thread: BrokerThread | None = None
        self._undo = Undo()
        self._stopped: asyncio.Task[None] | None = None

    @property
    def node(self) -> Node:
        """The parts of this broker; they remain readable after a stop.

        Raises:
            RuntimeError: the broker has not been started.
        """
        if self._node is None:
            raise RuntimeError(NOT_STARTED)
        return self._node

    @property
    def bootstrap_servers(self) -> str:
        """The address of the first listener for its clients: `host:port`.

        It stays readable after a stop, so that another broker can be started at the same address.

        Raises:
            RuntimeError: the broker has not been started.
        """
        return self.node.served_listeners.bootstrap_servers

    def client_settings(self, user: str | None = None) -> ClientSettings:
        """The settings with which clients of a user of `security` connect, for each kind of client.

        `user` is None if `security` has no users. Security that the configuration itself asks for is not
        included.

        Raises:
            ValueError: there is no such user.
            RuntimeError: the broker has not been started.
        """
        # Imported late: it loads all of SASL, which a broker without SASL does not need.
        from pykafka_broker.broker.security.declared import Security

        return (self._security or Security()).client_settings(self.bootstrap_servers, user)

    async def failed(self) -> None:
        """Never return; raise when the broker cannot go on: metadata, or all data, cannot be written.

        It can be awaited as soon as `start` runs, and raises the error of a failed start too.

        Raises:
            RuntimeError: `start` does not run yet.
        """
        if self._foundation is None:
            raise RuntimeError(NOT_STARTED)
        await self._foundation.failure.wait()

    async def start(self) -> None:
        """Start serving; when this returns, the broker answers all requests.

        A broker starts once. A start that fails leaves nothing behind: no lock, no socket, no thread.

        Raises:
            LogDirError, StorageFormatError: the data directories cannot be used; the text says what to do.
            OSError: an address cannot be listened on.
            KafkaError: the users or ACLs of `security` cannot be created.
        """
        if self._foundation is not None or self._stopped is not None:
            raise RuntimeError("a broker starts once: make another one")
        foundation = self._foundation = lay(self._config, self._clock, self._files)
        name_static(self._config)
        try:
            self._node = await start_node(foundation, self._undo)
            if self._security is not None:
                await self._security.write(self._node.administration)
                await self._node.metadata.caught_up()
        except BaseException as error:
            await self.stop()
            if isinstance(error, KafkaError):
                foundation.failure.raise_if_happened()  # the disk's error, which caused this one
            if isinstance(error, Exception):
                foundation.failure.set(error)
            raise

    async def stop(self, *, hands_over: bool = True) -> None:
        """Answer parked requests, close the connections, sync the logs and mark them as cleanly closed.

        In a cluster of several nodes this one first hands its leaderships over, unless `hands_over` is False.
        Stopping again is harmless: each call returns when the stop has ended.
        """
        if self._stopped is None:
            self._stopped = asyncio.get_running_loop().create_task(self._stop(hands_over))
        await asyncio.shield(self._stopped)

    async def hand_over(self) -> None:
        """Hand this broker's leaderships over to other brokers and be fenced, as `stop` does first.

        After this the broker leads nothing, and answers requests until it is stopped. If all nodes of a
        cluster stop, all hand over while the controllers still run: then each can start again at once.

        Raises:
            RuntimeError: the broker has not been started.
        """
        await self.node.hand_over()

    async def kill(self) -> None:
        """Stop like a killed process: connections break, and nothing is handed over.

        The next start recovers the logs as after a kill. Written data is not lost.
        """
        if self._stopped is None and self._node is not None:
            await self._node.break_off()
        await self.stop(hands_over=False)

    async def _stop(self, hands_over: bool) -> None:
        if self._node is not None and not hands_over:
            await self._node.fall_silent()
        await self._undo.close()

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> Broker:
        from pykafka_broker.broker.broker_thread import BrokerThread  # not needed in an event loop

        thread = BrokerThread(self, f"broker-{self.node_id}-loop")
        thread.start()
        # Set only now: if this is a second start, which is refused, the serving thread stays the one to stop.
        self._thread = thread
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is None:
            raise RuntimeError(NOT_STARTED)
        self._thread.stop()


def _secured(config: BrokerConfig, security: Security) -> BrokerConfig:
    if not config.standalone:
        raise ConfigError(
            "security is for a broker that is a cluster by itself: secure others in their configuration, or "
            "use Cluster"
        )
    told = (*config.listeners, *config.advertised_listeners)
    names = (*(listener.name for listener in config.listeners), *config.controller_listener_names)
    return config.with_static(security.keys(names, [listener.host for listener in told if listener.host]))
