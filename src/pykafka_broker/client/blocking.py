"""The client's shell for programs that wait: sockets, one request at a time.

    with Client("127.0.0.1:9092") as client:
        response = client.send(MetadataRequest(topics=None))

`Client` is a cluster, `BlockingConnection` one broker, `FrameSocket` the bytes below: it sends bytes as given
and returns each frame as it came. `ResponseBuffer` is for load generators.

No threads. With `BlockingConnection.post` and `receive` the caller can work while a request is in flight.
Works with any broker from Kafka 2.1 on whose API versions overlap with ours.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pykafka_broker.client.core.addresses import Address, parse_addresses
from pykafka_broker.client.core.connection import CLIENT, ConnectionState, Identity
from pykafka_broker.client.core.conversation import (
    AnotherMechanismError,
    Ask,
    Conversation,
    Reply,
    Result,
    Step,
    drive,
)
from pykafka_broker.client.core.frames import MAX_RESPONSE_BYTES, FrameCutter
from pykafka_broker.client.core.metadata import Brokers, fetch_metadata, find_broker, find_topic, leaders_of
from pykafka_broker.client.core.retries import RETRIABLE, first_attempt
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.frames import LENGTH, LENGTH_BYTES
from pykafka_broker.protocol.messages import API_NAMES

if TYPE_CHECKING:
    from ssl import SSLContext

    from pykafka_broker.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

TIMEOUT_S = 30.0
#: How long one of several addresses may take to connect, and for each answer before the first request, until
#: the next address is tried: a paused broker still accepts connections. Kafka's clients allow 10 s for the
#: connection alone (socket.connection.setup.timeout.ms).
NEXT_ADDRESS_AFTER_S = 1.0

Returned = TypeVar("Returned")

#: Returns the context of TLS for a connection.
Tls = Callable[[], "SSLContext"]

_unpack_length = LENGTH.unpack_from


def now_ms() -> int:
    """The monotonic time by which attempts are timed."""
    return time.monotonic_ns() // 1_000_000


class Notices(Protocol):
    """Messages for a person who waits."""

    def waiting_for(self, peer: str) -> AbstractContextManager[None]:
        """Show that the body of the `with` statement waits for this broker."""
        ...

    def doubts(self, peer: str, error: Exception) -> None:
        """The connection failed before the first request; may add a note to the error."""
        ...

    def not_let_in(self, peer: str, error: KafkaError) -> None:
        """The broker refused the user. May add a note to the error."""
        ...

    def refused(self, peer: str, error: ConnectionError) -> None:
        """The broker closed the connection at the first request; may add a note to the error."""
        ...


class NoNotices:
    """Shows nothing."""

    def waiting_for(self, peer: str) -> AbstractContextManager[None]:
        return nullcontext()

    def doubts(self, peer: str, error: Exception) -> None:
        pass

    def not_let_in(self, peer: str, error: KafkaError) -> None:
        pass

    def refused(self, peer: str, error: ConnectionError) -> None:
        pass


SILENCE = NoNotices()


class AnswerTimeout(ConnectionError):
    """No answer came in time."""


class ConnectTimeout(AnswerTimeout):
    """No connection was made in time."""


def connect(address: Address, timeout_s: float = TIMEOUT_S, tls: Tls | None = None) -> socket.socket:
    """A connected socket without Nagle's delay; with TLS, after its handshake.

    Raises:
        ConnectionError: the connection or the TLS handshake failed (`ConnectTimeout`: not done in time).
    """
    try:
        connected = socket.create_connection(address, timeout=timeout_s)
    except OSError as error:
        kind = ConnectTimeout if isinstance(error, TimeoutError) else ConnectionError
        raise kind(f"Cannot connect to {address}: {error.strerror or error}") from None
    except UnicodeError:
        raise ConnectionError(f"Cannot connect to {address}: {address.host!r} is no host name") from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected if tls is None else _secured(connected, address, tls())


def _secured(connected: socket.socket, address: Address, tls: SSLContext) -> socket.socket:
    from ssl import SSLCertVerificationError, SSLError

    try:
        return tls.wrap_socket(connected, server_hostname=address.host)
    except SSLCertVerificationError as error:
        reason = f"the certificate of {address} is not trusted: {error.verify_message}"
    except SSLError as error:
        reason = f"{address} does not agree on TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
    except TimeoutError:
        connected.close()
        raise ConnectTimeout(f"{address} did not answer the TLS handshake in time") from None
    except OSError:
        reason = f"{address} closed the connection in the TLS handshake"
    connected.close()
    raise ConnectionError(reason[0].upper() + reason[1:])


class FrameSocket:
    """Frames over a connected socket; their content is not interpreted."""

    __slots__ = ("_cutter", "_receive_into", "peer", "send_bytes", "socket")

    def __init__(self, connected: socket.socket, peer: str, landing_bytes: int = LENGTH_BYTES) -> None:
        """If `landing_bytes` exceeds `LENGTH_BYTES`, frames may wait here though the socket is empty."""
        self.socket = connected
        self.peer = peer
        #: Sends all of the given bytes.
        self.send_bytes = connected.sendall
        self._receive_into = connected.recv_into
        self._cutter = FrameCutter(peer, landing_bytes)

    def receive(self) -> Buffer:
        """The next frame, without its length.

        Raises:
            ConnectionError: the connection has ended.
            TimeoutError: the socket has a time-out, and it has passed.
            ProtocolError: the bytes received are no frame.
        """
        cutter = self._cutter
        while (frame := cutter.next_frame()) is None:
            size = self._receive_into(cutter.get_buffer())
            if not size:
                raise ConnectionError(f"{self.peer} closed the connection")
            cutter.received(size)
        return frame

    @property
    def is_closed(self) -> bool:
        """Whether this side has closed the socket."""
        return self.socket.fileno() < 0

    def close(self) -> None:
        self.socket.close()


class ResponseBuffer:
    """Receives responses into memory that it reuses, for callers that measure microseconds: a small response
    costs 1.5 us less than through a `FrameSocket`. A response is valid until the next call.
    """

    __slots__ = ("_memory",)

    def __init__(self, size_bytes: int = 64 * 1024) -> None:
        self._memory = memoryview(bytearray(size_bytes))

    def receive(self, connected: socket.socket, count: int = 1) -> memoryview:
        """The answers to `count` requests that were sent together: frames, each after its length. No other
        request may be unanswered.

        Raises:
            ConnectionError: the connection has ended.
            ProtocolError: the bytes received are something else.
        """
        memory = self._memory
        size = connected.recv_into(memory)
        if count != 1 or size < LENGTH_BYTES or size != LENGTH_BYTES + _unpack_length(memory)[0]:
            return self._rest(connected, size, count)
        return memory[:size]

    def _rest(self, connected: socket.socket, size: int, count: int) -> memoryview:
        """All of the answer, of which `size` bytes have been received."""
        end = 0
        for _ in range(count):
            size = self._fill(connected, size, end + LENGTH_BYTES)
            (length,) = _unpack_length(self._memory, end)
            if not 0 < length <= MAX_RESPONSE_BYTES:
                raise ProtocolError(f"the broker announces a response of {length} bytes")
            end += LENGTH_BYTES + length
            size = self._fill(connected, size, end)
        if size != end:
            raise ProtocolError("the broker sent more responses than it was asked for")
        return self._memory[:size]

    def _fill(self, connected: socket.socket, size: int, least: int) -> int:
        """Receive until the memory has at least `least` bytes; return their number."""
        if least > len(self._memory):
            larger = memoryview(bytearray(2 * least))
            larger[:size] = self._memory[:size]
            self._memory = larger
        while size < least:
            came = connected.recv_into(self._memory[size:])
            if not came:
                raise ConnectionError("the broker closed the connection")
            size += came
        return size


class BlockingConnection:
    """A connection to one broker, open for requests."""

    def __init__(
        self,
        address: Address,
        timeout_s: float = TIMEOUT_S,
        *,
        setup_timeout_s: float | None = None,
        identity: Identity = CLIENT,
        notices: Notices = SILENCE,
    ) -> None:
        """Connect, and find out which versions the broker serves.

        Args:
            address: The address of the broker.
            timeout_s: The time-out of each answer.
            setup_timeout_s: The same until the connection is open for requests; None: `timeout_s`.
            identity: The client's identity.
            notices: Messages for a person who waits.

        Raises:
            ConnectionError: there is no broker, or it does not answer (`AnswerTimeout`: in time).
            ProtocolError: the answer is not that of a broker.
            KafkaError: the broker refuses.
        """
        self._notices = notices
        #: Whether a request of the caller was answered.
        self._is_served = False
        self._frames: FrameSocket
        patience_s = timeout_s if setup_timeout_s is None else min(timeout_s, setup_timeout_s)
        try:
            self._open(address, patience_s, identity)
        except AnotherMechanismError:
            self._open(address, patience_s, identity)
        self._frames.socket.settimeout(timeout_s)
        self._is_open = True

    def _open(self, address: Address, timeout_s: float, identity: Identity) -> None:
        self._is_open = False
        self._state = ConnectionState(str(address), identity)
        tls = identity.security.tls if identity.security else None
        if identity.security is not None and (stale := identity.security.stale_tokens) is not None:
            stale.refresh()
        try:
            with self._notices.waiting_for(str(address)):
                self._frames = FrameSocket(connect(address, timeout_s, tls), str(address))
        except ConnectTimeout as error:
            self._notices.doubts(str(address), error)
            raise
        try:
            drive(self._state.opening(), self._carry_out)
        except BaseException as error:
            self.close()
            if isinstance(error, (ConnectionError, ProtocolError)):
                self._notices.doubts(str(address), error)
            elif isinstance(error, KafkaError) and error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
                self._notices.not_let_in(str(address), error)
            raise

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """API key -> the lowest and the highest version that the broker serves."""
        return self._state.versions

    @property
    def peer(self) -> str:
        """The address of the broker."""
        return self._state.peer

    @property
    def metadata_offset(self) -> int:
        """The offset of the metadata log that the broker had published when the connection was opened; -1 if
        unknown.
        """
        return self._state.metadata_offset

    def newest_version(self, request: object, at_most: int | None = None) -> int:
        """The newest version of the request that both sides know, and that is not newer than `at_most`.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, there is none.
        """
        return self._state.newest_version(request, at_most)

    def send(self, request: object, version: int | None = None) -> Any:
        """Send a request and return its response; None when the request wants none (acks=0).

        Raises:
            KafkaError: the request cannot be sent to this broker.
            ConnectionError: the broker does not answer; the connection is closed.
            ProtocolError: the broker answers something else; the connection is closed.
        """
        return self.receive() if self.post(request, version) else None

    def post(self, request: object, version: int | None = None) -> bool:
        """Send a request without waiting for its response, which `receive` returns; return whether there will
        be one.

        Raises:
            KafkaError: the request cannot be sent to this broker.
            ConnectionError: the broker does not take it; the connection is closed.
        """
        sent = self._state.send(request, version)
        try:
            self._frames.send_bytes(sent.frame)
        except TimeoutError:
            self.close()
            name = API_NAMES[api_key_of(request)]
            raise AnswerTimeout(f"{self._state.peer} did not take {name} in time") from None
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise ConnectionError(f"{self._state.peer} closed the connection") from None
        except BaseException:
            # The broker would take the next bytes for the rest of this request.
            self.close()
            raise
        return sent.is_answered

    def receive(self) -> Any:
        """The response to the oldest request that has none.

        Raises:
            ConnectionError: the broker does not answer; the connection is closed.
            ProtocolError: the broker answers something else; the connection is closed.
        """
        try:
            with self._notices.waiting_for(self._state.peer):
                frame = self._frames.receive()
            message = self._state.receive(frame).message
            self._is_served = self._is_open
            return message
        except TimeoutError:
            self.close()
            name = API_NAMES[self._state.oldest_api_key]
            raise AnswerTimeout(f"{self._state.peer} did not answer {name} in time") from None
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise self._ended(ConnectionError(f"{self._state.peer} closed the connection")) from None
        except ConnectionError as error:
            self.close()
            raise self._ended(error) from None
        except OSError as error:
            # In TLS 1.3 a client learns after the handshake that its certificate is refused.
            self.close()
            reason = getattr(error, "reason", None) or str(error)
            words = reason.lower().replace("_", " ")
            raise self._ended(ConnectionError(f"{self._state.peer} ended TLS: {words}")) from None
        except BaseException:
            # The late answer would be taken for that of the next request.
            self.close()
            raise

    def _ended(self, error: ConnectionError) -> ConnectionError:
        """The error of a connection that the broker has closed; notifies if no request was answered."""
        if self._is_open and not self._is_served:
            self._notices.refused(self._state.peer, error)
        return error

    def fileno(self) -> int:
        """The socket's descriptor, for selecting on it; negative once closed."""
        return self._frames.socket.fileno()

    def _carry_out(self, step: Step) -> Reply:
        assert isinstance(step, Ask), step
        return Reply(self.send(step.request, step.version), now_ms())

    @property
    def is_closed(self) -> bool:
        return self._frames.is_closed

    def close(self) -> None:
        self._frames.close()


class Client:
    """A cluster, reached through any of its brokers.

    Used as a context manager; closing it closes all connections.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        timeout_s: float = TIMEOUT_S,
        *,
        identity: Identity = CLIENT,
        notices: Notices = SILENCE,
    ) -> None:
        self.bootstrap_servers = parse_addresses(bootstrap_servers)
        self.timeout_s = timeout_s
        self.brokers = Brokers()
        self._identity = identity
        self._notices = notices
        self._connections: dict[int | None, BlockingConnection] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def send(self, request: object, node_id: int | None = None, version: int | None = None) -> Any:
        """Send a request to one broker, or to any, and return the response."""
        return self.connection(node_id).send(request, version)

    def connection(self, node_id: int | None = None) -> BlockingConnection:
        """The connection to a broker; without an id, to the first bootstrap server or known broker that
        answers.

        A closed one, on which an exchange was cut short, is replaced.
        """
        known = self._connections.get(node_id)
        if known is None or known.is_closed:
            known = self._connections[node_id] = self._bootstrap() if node_id is None else self._to(node_id)
        return known

    def _bootstrap(self) -> BlockingConnection:
        """Connect to the first address that answers. Of several, each is first tried for
        `NEXT_ADDRESS_AFTER_S`; if none answers, those that timed out share the time-out in a second try.

        Raises:
            ConnectionError: the error of the last address tried.
        """
        addresses = list(dict.fromkeys((*self.bootstrap_servers, *self.brokers.addresses.values())))
        if len(addresses) == 1:
            return self._open(addresses[0])
        silent = []
        for address in addresses:
            try:
                return self._open(address, NEXT_ADDRESS_AFTER_S)
            except AnswerTimeout:
                silent.append(address)
            except ConnectionError:
                if address is addresses[-1] and not silent:
                    raise
        *others, last = silent
        share_s = self.timeout_s / len(silent)
        for address in others:
            try:
                return self._open(address, share_s)
            except ConnectionError:
                continue
        return self._open(last, share_s)

    def _to(self, node_id: int) -> BlockingConnection:
        return self._open(self.run(find_broker(self.brokers, node_id)))

    def _open(self, address: Address, setup_timeout_s: float | None = None) -> BlockingConnection:
        return BlockingConnection(
            address,
            self.timeout_s,
            setup_timeout_s=setup_timeout_s,
            identity=self._identity,
            notices=self._notices,
        )

    # -- look-ups ----------------------------------------------------------------------------------------

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> MetadataResponse:
        """The Metadata response for these topics; for all of them, if None."""
        return self.run(fetch_metadata(self.brokers, topics, auto_create=auto_create))

    def cluster_id(self) -> str:
        """The id of the cluster; empty if unknown."""
        return self.metadata([]).cluster_id or ""

    def topic(
        self, name: str, *, led: Collection[int] | None = None, auto_create: bool = False
    ) -> MetadataResponseTopic:
        """One topic's metadata, once those of its partitions that are in `led` have a leader; None: all of
        them.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, there is no such topic; or the error of the last answer.
        """
        attempt = first_attempt(now_ms(), self._timeout_ms)
        return self.run(find_topic(self.brokers, name, attempt, led=led, auto_create=auto_create))

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition -> the broker that leads it."""
        return leaders_of(self.topic(topic))

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group."""
        return self._coordinator(group, self._timeout_ms)

    def _coordinator(self, group: str, timeout_ms: int) -> int:
        """As `coordinator`, retried for `timeout_ms`, at least one attempt."""
        from pykafka_broker.client.core.coordinators import find_coordinator

        return self.run(find_coordinator(self.brokers, group, first_attempt(now_ms(), timeout_ms)))

    def at_coordinator(self, group: str, ask: Callable[[int], Returned]) -> Returned:
        """The result of `ask`, called with the id of a group's coordinator; retries as `retrying`."""
        return self.retrying(lambda: ask(self._coordinator(group, 0)))

    def attempts(self) -> Iterator[bool]:
        """Yields once per attempt, until the time-out; True marks the last attempt."""
        attempt = first_attempt(now_ms(), self._timeout_ms)
        while not attempt.is_last:
            yield False
            _sleep_until(attempt.next_ms)
            attempt = attempt.again(now_ms())
        yield True

    def retrying(self, once: Callable[[], Returned], temporary: Container[ErrorCode] = RETRIABLE) -> Returned:
        """The result of the first call that succeeds; retries while brokers restart and leaders move.

        Each call must look up its broker anew. Retries end with the time-out, and at once if the cluster has
        never answered: then the address may be wrong.

        Raises:
            KafkaError, OSError: the error of the last call, or an error that is not temporary.
        """
        for is_last in self.attempts():
            try:
                return once()
            except OSError:
                if is_last or not self.brokers.addresses:
                    raise
            except KafkaError as error:
                # A broker that has just stopped may be listed as a leader, but no longer as a broker.
                if is_last or not (error.code in temporary or error.code == ErrorCode.BROKER_NOT_AVAILABLE):
                    raise
        raise AssertionError("attempts end with a last one")

    @property
    def _timeout_ms(self) -> int:
        return round(self.timeout_s * 1000)

    def run(self, conversation: Conversation[Result]) -> Result:
        """Run a conversation with the brokers of this cluster to its end."""
        return drive(conversation, self._carry_out)

    def _carry_out(self, step: Step) -> Reply:
        if isinstance(step, Ask):
            version = step.version
            if version is None and step.at_most is not None:
                version = self.connection(step.node_id).newest_version(step.request, step.at_most)
            return Reply(self.send(step.request, step.node_id, version), now_ms())
        _sleep_until(step.until_ms)
        return Reply(None, now_ms())


def _sleep_until(moment_ms: int) -> None:
    time.sleep(max(0, moment_ms - now_ms()) / 1000)
