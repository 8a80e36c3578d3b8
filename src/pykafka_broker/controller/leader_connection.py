"""Requests of this node to the active controller on another node.

The active controller is the leader of the metadata log. The callers share one connection, which is made for
the first request. A request is sent again until its time-out if the connection breaks, no leader is known
yet, or the node that was asked is no longer the leader (NOT_CONTROLLER). As in Apache Kafka, a request
without an answer may have been carried out.

When the replica of the log on this node learns of another leader, the connection to the former leader is
closed at once and its waiting requests are sent again: a hanging node would hold them until their time-outs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.client.aio import AsyncConnection, close_connecting, connect
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.controller.channel import LedHere
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.fields import error_codes
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.ordered_set import OrderedSet
from pykafka_broker.system.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import ClientSecurity


logger = logging.getLogger("org.apache.kafka.server.NodeToControllerRequestThread")

#: The pause before a request is sent again.
RETRY_PAUSE_MS = 50
#: How long to wait for a leader before looking again; news of a leader ends the wait.
NO_LEADER_PAUSE_MS = 100
#: The most callers that may wait at a time.
MAX_CALLERS = 500


class LogLeader(Protocol):
    """The leader of the metadata log, as the replica on this node knows it."""

    @property
    def leader_address(self) -> tuple[str, int] | None:
        """The leader's address; None while it is unknown or this node leads."""
        ...

    def watch_leader(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when the leader may have changed, or when this node's controller becomes active."""
        ...


class LeaderConnectionSettings(NamedTuple):
    """Settings; `name` is that of Apache Kafka's channel, for log lines.

    `patience_ms` is the time-out of a request with all its attempts, `attempt_timeout_ms` that of one attempt
    (`controller.socket.timeout.ms`), `connect_timeout_ms` that of a new connection.
    """

    node_id: int
    name: str
    patience_ms: int = 60_000
    attempt_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    security: ClientSecurity | None = None


class LeaderConnection:
    """Event loop only. `is_led_here` tells whether the active controller is in this process."""

    def __init__(
        self,
        leader: LogLeader,
        clock: Clock,
        settings: LeaderConnectionSettings,
        *,
        is_led_here: Callable[[], bool] = lambda: False,
    ) -> None:
        self._leader = leader
        self._clock = clock
        self._settings = settings
        self._is_led_here = is_led_here
        self._lines = RepeatedLines(logger, clock.now_ms)
        self._prefix = f"[NodeToControllerChannelManager id={settings.node_id} name={settings.name}] "
        #: The connection, which may still be being made, and its address.
        self._connection: asyncio.Task[AsyncConnection] | None = None
        self._address: Address | None = None
        #: Connections that are being closed.
        self._closing: OrderedSet[asyncio.Task[None]] = OrderedSet()
        #: The pauses of callers before their next attempts.
        self._waiting: OrderedSet[Wait] = OrderedSet()
        self._callers = 0
        self._is_closed = False
        leader.watch_leader(self._leader_changed)

    @property
    def patience_ms(self) -> int:
        """The time-out of a request with all its attempts."""
        return self._settings.patience_ms

    @property
    def served_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """API key -> the lowest and highest version that the controller serves; None without a connection."""
        connecting = self._connection
        if connecting is None or not connecting.done() or connecting.cancelled() or connecting.exception():
            return None
        return connecting.result().served_versions

    async def ask(self, request: object, *, timeout_ms: int | None = None) -> Any:
        """The controller's response, whatever errors it has besides NOT_CONTROLLER.

        Raises:
            LedHere: the active controller is in this process.
            KafkaError: REQUEST_TIMED_OUT, no controller has answered in time, or too many callers wait;
                UNSUPPORTED_VERSION, the controller does not serve it; NOT_CONTROLLER, `close` was called.
        """
        if self._callers >= MAX_CALLERS:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Too many requests wait for the controller.")
        patience_ms = self._settings.patience_ms if timeout_ms is None else timeout_ms
        self._callers += 1
        try:
            return await self._ask_until(request, self._clock.monotonic_ms() + patience_ms)
        finally:
            self._callers -= 1

    async def close(self) -> None:
        """Answer waiting callers with NOT_CONTROLLER, and close the connection."""
        self._is_closed = True
        self._give_up_connection()
        self._wake()
        while self._closing:
            await asyncio.wait(tuple(self._closing))

    # -- attempts --------------------------------------------------------------------------------------

    async def _ask_until(self, request: object, give_up_ms: int) -> Any:
        while True:
            if self._is_closed:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is stopping.")
            if self._is_led_here():
                raise LedHere
            left_ms = give_up_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "No controller has answered in time.")
            address = self._leader.leader_address
            if address is None:
                await self._pause(min(left_ms, NO_LEADER_PAUSE_MS))
                continue
            response = await self._attempt(Address(*address), request, left_ms)
            if response is not None:
                return response
            await self._pause(RETRY_PAUSE_MS)

    async def _attempt(self, address: Address, request: object, left_ms: int) -> Any:
        """The response to one attempt; None if the caller should try again."""
        connecting = self._connection_to(address)
        give_up_ms = self._clock.monotonic_ms() + left_ms
        await self._done(connecting, left_ms)
        if not connecting.done() or connecting.cancelled():
            return None
        if (failure := connecting.exception()) is not None:
            self._failed(connecting, address, failure)
            return None
        left_ms = max(0, give_up_ms - self._clock.monotonic_ms())
        attempt_ms = self._settings.attempt_timeout_ms
        try:
            response = await connecting.result().send(request, timeout_ms=min(left_ms, attempt_ms))
        except (OSError, ProtocolError) as error:
            # If only this caller's time is over, the others keep waiting on the connection.
            if not isinstance(error, TimeoutError) or left_ms >= attempt_ms:
                self._failed(connecting, address, error)
            return None
        if ErrorCode.NOT_CONTROLLER not in error_codes(response):
            return response
        logger.debug("%s%s is not the active controller any more", self._prefix, address)
        self._give_up(connecting)
        return None

    def _failed(
        self, connecting: asyncio.Task[AsyncConnection], address: Address, error: BaseException
    ) -> None:
        """A caller has lost the connection; the first such caller closes it and causes the log line."""
        if connecting is not self._connection:
            return
        text = f"{self._prefix}No answer of the controller at {address}: {error}"
        self._lines.log(logging.INFO, "unanswered", str(address), text)
        self._give_up_connection()

    async def _done(self, connecting: asyncio.Task[AsyncConnection], timeout_ms: int) -> None:
        """Return when the task is done or the time is over."""
        if connecting.done():
            return
        wait = Wait()
        connecting.add_done_callback(wait.end)
        await wait.until(self._clock.call_at, self._clock.monotonic_ms() + timeout_ms)

    async def _pause(self, duration_ms: int) -> None:
        """Return after this time, or as soon as there may be another leader."""
        wait = Wait()
        self._waiting.add(wait)
        try:
            await wait.until(self._clock.call_at, self._clock.monotonic_ms() + duration_ms)
        finally:
            self._waiting.discard(wait)

    def _wake(self) -> None:
        for wait in self._waiting:
            wait.end()

    # -- the connection --------------------------------------------------------------------------------

    def _connection_to(self, address: Address) -> asyncio.Task[AsyncConnection]:
        if self._connection is None or self._address != address:
            self._give_up_connection()
            settings = self._settings
            identity = Identity(str(settings.node_id), kind="node", security=settings.security)
            timeout_ms = min(settings.connect_timeout_ms, settings.attempt_timeout_ms)
            self._address = address
            self._connection = asyncio.get_running_loop().create_task(
                connect(address, identity=identity, clock=self._clock, timeout_ms=timeout_ms)
            )
        return self._connection

    def _leader_changed(self) -> None:
        address = self._leader.leader_address
        if self._is_led_here() or (address is not None and Address(*address) != self._address):
            self._give_up_connection()
        self._wake()

    def _give_up(self, connecting: asyncio.Task[AsyncConnection]) -> None:
        """Close this connection, unless another one has replaced it."""
        if connecting is self._connection:
            self._give_up_connection()

    def _give_up_connection(self) -> None:
        connecting, self._connection, self._address = self._connection, None, None
        if connecting is None:
            return
        task = asyncio.get_running_loop().create_task(close_connecting(connecting))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
