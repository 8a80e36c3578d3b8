"""The client's shell for asyncio: many requests in flight over one connection.

    async with await connect(Address("127.0.0.1", 9092)) as connection:
        first = connection.start(MetadataRequest(topics=None))
        second = await connection.send(ListGroupsRequest(), timeout_ms=5_000)
        response = await first

`AsyncConnection` numbers the requests and gives each its response. If a caller times out or is cancelled,
its response is dropped when it comes, and the connection serves the other callers as before. When the
connection ends, every waiting caller gets the reason.

`FrameStream` is the lower part: it sends the bytes that it is given and returns each frame as it came.

Bytes are written at once and may wait in the transport; `MAX_IN_FLIGHT` of `connection.py` limits the number
of unanswered requests.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import CLIENT, ConnectionState, Identity
from pykafka_broker.client.core.conversation import CANNOT, Ask, Conversation, Reply, Result, Step
from pykafka_broker.client.core.frames import FrameCutter
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages import API_NAMES

if TYPE_CHECKING:
    from ssl import SSLContext

    from pykafka_broker.client.core.authentication import TokenSource

#: The most bytes of one receive.
LANDING_BYTES = 16 * 1024
TIMEOUT_MS = 30_000
SYSTEM_CLOCK = SystemClock()


# -- bytes
# --------


class Receiver(Protocol):
    """Called with the frames that a stream receives, and at its end."""

    def frame_received(self, frame: Buffer) -> None:
        """Take a frame, without its length. A `ProtocolError` from here ends the connection."""
        ...

    def connection_lost(self, error: Exception) -> None:
        """No more frames will come. Called once."""
        ...


class Stream(asyncio.BufferedProtocol):
    """The bytes of one connection; those received are cut into frames for `receiver`."""

    def __init__(self, peer: str, receiver: Receiver) -> None:
        self.peer = peer
        self._receiver = receiver
        self._cutter = FrameCutter(peer, LANDING_BYTES)
        self._transport: asyncio.Transport | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: The error with which this side has closed the connection.
        self._reason: Exception | None = None

    @property
    def is_closed(self) -> bool:
        """Whether either side has closed the connection."""
        return self._transport is None or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send these bytes, without waiting.

        Raises:
            ConnectionError: the connection is closed.
        """
        if self._transport is None or self._transport.is_closing():
            raise self._closed()
        self._transport.write(data)

    async def close(self) -> None:
        """Send what was written, close the connection, and return when it is gone."""
        self._reason = self._reason or self._closed()
        if self._transport is not None:
            self._transport.close()
        await asyncio.shield(self._gone)

    def _closed(self) -> ConnectionError:
        return ConnectionError(f"The connection to {self.peer} is closed")

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is no subclass.
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._cutter.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._cutter.received(nbytes)
        try:
            while (frame := self._cutter.next_frame()) is not None:
                self._receiver.frame_received(frame)
        except ProtocolError as error:
            self._reason = self._reason or error
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None or isinstance(exc, (BrokenPipeError, ConnectionResetError)):
            exc = ConnectionError(f"{self.peer} closed the connection")
        self._gone.set_result(None)
        self._receiver.connection_lost(self._reason or exc)


async def open_stream(
    address: Address,
    receiver: Receiver,
    timeout_ms: int = TIMEOUT_MS,
    tls: Callable[[], SSLContext] | None = None,
) -> Stream:
    """Connect to a broker. If its name has several addresses, they are tried in order.

    Raises:
        ConnectionRefusedError: nothing listens there.
        OSError: there is no way to the address, or none in time.
    """
    loop = asyncio.get_running_loop()
    # Certificates are compared with the given name, not with its address.
    secured: dict[str, Any] = {} if tls is None else {"ssl": tls(), "server_hostname": address.host}
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            hosts = list(dict.fromkeys(str(place[0]) for *_, place in found))
            for host in hosts:
                try:
                    _, stream = await loop.create_connection(
                        lambda: Stream(str(address), receiver), host, address.port, **secured
                    )
                    return stream
                except OSError:
                    if host == hosts[-1]:
                        raise
    except TimeoutError:
        raise TimeoutError(f"Cannot connect to {address} in time") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, OSError):  # the ValueError of a certificate that is not trusted
            raise
        # UnicodeError, for a label of more than 63 letters; OverflowError, for a port above 65535.
        raise OSError(f"{address} is no address: {error}") from None
    raise OSError(f"{address.host} has no address")


class FrameQueue:
    """Frames that were received and not taken yet."""

    def __init__(self) -> None:
        self._frames: deque[Buffer] = deque()
        self._lost: Exception | None = None
        self._news: asyncio.Future[None] | None = None

    async def take(self) -> Buffer:
        """The next frame; one task at a time may wait for it. Raises the error that ended the connection."""
        while not self._frames:
            if self._lost is not None:
                raise self._lost
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        return self._frames.popleft()

    def frame_received(self, frame: Buffer) -> None:
        self._frames.append(frame)
        self._tell()

    def connection_lost(self, error: Exception) -> None:
        self._lost = error
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class FrameStream:
    """Frames over a connection; their content is not interpreted."""

    def __init__(self, stream: Stream, received: FrameQueue) -> None:
        self._stream = stream
        self._received = received

    @classmethod
    async def open(cls, address: Address, tls: Callable[[], SSLContext] | None = None) -> Self:
        """Connect to a broker, with TLS if a context is given.

        Raises:
            OSError: there is no way to the address, or none in time.
        """
        received = FrameQueue()
        return cls(await open_stream(address, received, tls=tls), received)

    def write(self, data: bytes) -> None:
        """Send any bytes, without waiting.

        Raises:
            ConnectionError: the connection is closed.
        """
        self._stream.write(data)

    async def receive(self) -> Buffer:
        """The next frame, without its length; one task at a time may wait for it.

        Raises:
            OSError: the connection has ended.
            ProtocolError: the bytes received are no frame.
        """
        return await self._received.take()

    async def close(self) -> None:
        """Send what was written, close the connection, and return when it is gone."""
        await self._stream.close()


# -- requests and responses
# -------------------------


class Callers:
    """The callers that wait for responses."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._by_correlation_id: dict[int, asyncio.Future[Any]] = {}

    def add(self, correlation_id: int) -> asyncio.Future[Any]:
        """A caller for the response with this correlation id."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._by_correlation_id[correlation_id] = response
        return response

    def frame_received(self, frame: Buffer) -> None:
        received = self._state.receive(frame)
        response = self._by_correlation_id.pop(received.correlation_id)
        if not response.done():
            response.set_result(received.message)

    def connection_lost(self, error: Exception) -> None:
        for response in self._by_correlation_id.values():
            if not response.done():
                response.set_exception(error)
        self._by_correlation_id.clear()


class AsyncConnection:
    """A connection to one broker; `connect` makes one."""

    def __init__(self, stream: Stream, state: ConnectionState, callers: Callers, clock: Clock) -> None:
        self._stream = stream
        self._state = state
        self._callers = callers
        self._clock = clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def served_versions(self) -> Mapping[int, tuple[int, int]]:
        """API key -> the lowest and the highest version that the broker serves."""
        return self._state.versions

    @property
    def sent_bytes(self) -> int:
        """The bytes of requests so far."""
        return self._state.sent_bytes

    @property
    def received_bytes(self) -> int:
        """The bytes of responses so far."""
        return self._state.received_bytes

    @property
    def is_closed(self) -> bool:
        """Whether either side has closed the connection."""
        return self._stream.is_closed

    def newest_version(self, request: object, at_most: int | None = None) -> int:
        """The newest version of the request that both sides know, and that is not newer than `at_most`.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, there is none.
        """
        return self._state.newest_version(request, at_most)

    def start(self, request: object, version: int | None = None) -> asyncio.Future[Any]:
        """Send a request now; its response will be the future's result, None for acks=0.

        Raises:
            KafkaError: the request cannot be sent to this broker.
            ConnectionError: the connection is closed, or too many requests are unanswered.
        """
        sent = self._state.send(request, version)
        self._stream.write(sent.frame)
        if sent.is_answered:
            return self._callers.add(sent.correlation_id)
        nothing: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    async def send(self, request: object, version: int | None = None, *, timeout_ms: int = TIMEOUT_MS) -> Any:
        """Send a request and return its response; None for acks=0.

        Raises:
            KafkaError: the request cannot be sent to this broker.
            TimeoutError: no response has come in time; the connection stays open.
            OSError: the connection has ended.
            ProtocolError: the broker has sent something else than responses; the connection has ended.
        """
        response = self.start(request, version)
        late = TimeoutError(f"{self._stream.peer} did not answer {API_NAMES[api_key_of(request)]} in time")
        timer = self._clock.call_at(
            self._clock.monotonic_ms() + timeout_ms, partial(_give_up, response, late)
        )
        try:
            return await response
        finally:
            timer.cancel()

    async def run(self, conversation: Conversation[Result], *, timeout_ms: int = TIMEOUT_MS) -> Result:
        """Run a conversation to its end with this broker alone; the time-out is per request."""
        try:
            step = next(conversation)
            while True:
                try:
                    response = await self._carry_out(step, timeout_ms)
                except CANNOT as error:
                    step = conversation.throw(error)
                else:
                    step = conversation.send(Reply(response, self._clock.monotonic_ms()))
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _carry_out(self, step: Step, timeout_ms: int) -> Any:
        if isinstance(step, Ask):
            version = step.version
            if version is None and step.at_most is not None:
                version = self.newest_version(step.request, step.at_most)
            return await self.send(step.request, version, timeout_ms=timeout_ms)
        await self._clock.sleep(max(0, step.until_ms - self._clock.monotonic_ms()))
        return None

    async def close(self) -> None:
        """Send what was written, close the connection, and return when it is gone. Callers that wait get a
        ConnectionError.
        """
        await self._stream.close()


async def connect(
    address: Address,
    *,
    identity: Identity = CLIENT,
    clock: Clock = SYSTEM_CLOCK,
    timeout_ms: int = TIMEOUT_MS,
) -> AsyncConnection:
    """Connect to a broker, and find out which versions it serves.

    Raises:
        OSError: there is no broker, or it does not answer in time.
        ProtocolError: the answer is not that of a broker.
        KafkaError: the broker refuses.
    """
    state = ConnectionState(str(address), identity)
    callers = Callers(state)
    tls = identity.security.tls if identity.security else None
    if identity.security is not None and (stale := identity.security.stale_tokens) is not None:
        await _refreshed(stale)
    stream = await open_stream(address, callers, timeout_ms, tls)
    connection = AsyncConnection(stream, state, callers, clock)
    try:
        await connection.run(state.opening(), timeout_ms=timeout_ms)
    except BaseException:
        await connection.close()
        raise
    return connection


async def close_connecting(connecting: asyncio.Task[AsyncConnection]) -> None:
    """Close a connection, which may still be on its way."""
    connecting.cancel()
    [connection] = await asyncio.gather(connecting, return_exceptions=True)
    if isinstance(connection, AsyncConnection):
        await connection.close()


async def _refreshed(tokens: TokenSource) -> None:
    """Refresh the tokens in a thread, which the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: OSError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def work() -> None:
        outcome: OSError | None = None
        try:
            tokens.refresh()
        except OSError as error:
            outcome = error
        except Exception as error:  # else the caller would wait for ever
            outcome = ConnectionError(f"There is no bearer token: {error!r}")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=work, name="bearer-token", daemon=True).start()
    await done


def _give_up(response: asyncio.Future[Any], late: TimeoutError) -> None:
    if not response.done():
        response.set_exception(late)
