"""A blocking Kafka client on our own codec: as much as the commands need.

It negotiates versions with ApiVersions, finds leaders and coordinators by Metadata and FindCoordinator, and
sends one request at a time. It works against any broker from Kafka 2.1 on whose versions overlap with ours.
No pipelining, no background threads, no group membership.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from pykafka_broker import __version__
from pykafka_broker.cli.progress import waiting_for
from pykafka_broker.protocol.compile import decode, encode_parts
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.frames import foreign_protocol
from pykafka_broker.protocol.messages import API_NAMES, response_type
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pykafka_broker.protocol.schema import schema_of

CLIENT_ID = "pykafka-broker"
MAX_RESPONSE_BYTES = 256 * 1024 * 1024
#: How often a command tries again while the cluster elects, creates or loads something.
RETRY_PAUSE_S = 0.1

#: What goes away by itself.
RETRIABLE = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class Connection:
    """One connection to one broker."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.address = f"{host}:{port}"
        try:
            with waiting_for(self.address):
                self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as error:
            reason = error.strerror or str(error)
            failure = ConnectionError(f"Cannot connect to {self.address}: {reason}")
            if isinstance(error, TimeoutError):
                failure.add_note(self._hint)
            raise failure from None
        except UnicodeError:
            raise ConnectionError(f"Cannot connect to {self.address}: {host!r} is no host name") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        try:
            self.versions = self._negotiate()
        except BaseException as error:
            self.close()
            if isinstance(error, (ConnectionError, ProtocolError)):
                error.add_note(self._hint)
            raise

    def send(self, request: Any, version: int | None = None) -> Any:
        """Send a request and return its response; None when the request wants none (acks=0)."""
        if version is None:
            version = self.version_of(request)
        body = self._exchange(request, version)
        if body is None:
            return None
        response: Any
        response, _ = decode(response_type(request.api_key), version, body)
        return response

    def _exchange(self, request: Any, version: int) -> bytes | None:
        """Send a request and return the response without its header."""
        api_key: int = request.api_key
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=CLIENT_ID,
        )
        try:
            parts = (
                *encode_parts(header, request_header_version(api_key, version)),
                *encode_parts(request, version),
            )
        except (ValueError, struct.error) as error:
            # What the user named does not fit: it is too long, too large, or no text.
            name = API_NAMES[api_key]
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Kafka's {name} cannot say this: {error}") from None
        payload = b"".join(parts)
        try:
            self._socket.sendall(struct.pack(">i", len(payload)) + payload)
            if getattr(request, "acks", None) == 0:
                return None
            with waiting_for(self.address):
                frame = self._read_frame()
        except TimeoutError:
            self.close()
            name = API_NAMES[api_key]
            raise ConnectionError(f"{self.address} did not answer {name} in time") from None
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise ConnectionError(f"{self.address} closed the connection") from None
        except BaseException:
            # What is left unread would be taken for the answer to the next request.
            self.close()
            raise
        answered, at = decode(ResponseHeader, response_header_version(api_key, version), frame)
        if answered.correlation_id != self._correlation_id:
            raise ProtocolError(f"{self.address} answered another request than the one asked")
        return frame[at:]

    def version_of(self, request: Any) -> int:
        """The newest version of the request that both sides know.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, there is none.
        """
        api_key: int = request.api_key
        ours = schema_of(request).versions
        low, high = self.versions.get(api_key, (0, -1))
        version = min(high, ours[-1])
        if version < max(low, ours[0]):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.address} does not serve {API_NAMES[api_key]} in a version this command knows",
            )
        return version

    @property
    def _hint(self) -> str:
        """What helps further where it is doubtful that a broker is there at all."""
        return f"`pykafka-broker doctor {self.address}` may tell why"

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0

    def close(self) -> None:
        self._socket.close()

    def _negotiate(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=__version__)
        version = 3
        body = self._exchange(request, version) or b""
        # A broker that does not know the version answers in version 0, whose first field is the error.
        if int.from_bytes(body[:2], "big") == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
            body = self._exchange(request, version) or b""
        response: Any
        response, _ = decode(ApiVersionsResponse, version, body)
        check(response.error_code)
        return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def _read_frame(self) -> bytes:
        first = self._read(4)
        (size,) = struct.unpack(">i", first)
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            foreign = foreign_protocol(first)
            seems = f", and seems to speak {foreign}" if foreign else ""
            raise ProtocolError(f"{self.address} announces a response of {size} bytes{seems}")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError(f"{self.address} closed the connection")
            view = view[count:]
        return bytes(data)


class Client:
    """A cluster, reached through any of its brokers.

    Used as a context manager; closing it closes all connections.
    """

    def __init__(self, bootstrap_servers: str, timeout_s: float = 30.0) -> None:
        self.bootstrap_servers = parse_addresses(bootstrap_servers)
        self.timeout_s = timeout_s
        self.brokers: dict[int, tuple[str, int]] = {}
        self._connections: dict[int | None, Connection] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def send(self, request: Any, node_id: int | None = None, version: int | None = None) -> Any:
        """Send a request to one broker, or to any, and return the response."""
        return self.connection(node_id).send(request, version)

    def connection(self, node_id: int | None = None) -> Connection:
        """The connection to a broker; the first bootstrap server that answers, without an id.

        One that an exchange was cut short on is made anew.
        """
        if node_id not in self._connections or self._connections[node_id].is_closed:
            self._connections[node_id] = self._bootstrap() if node_id is None else self._connect(node_id)
        return self._connections[node_id]

    def _bootstrap(self) -> Connection:
        for host, port in self.bootstrap_servers[:-1]:
            try:
                return Connection(host, port, self.timeout_s)
            except ConnectionError:
                continue
        return Connection(*self.bootstrap_servers[-1], self.timeout_s)

    def _connect(self, node_id: int) -> Connection:
        if node_id not in self.brokers:
            self.metadata([])
        if node_id not in self.brokers:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {node_id} is not available.")
        return Connection(*self.brokers[node_id], self.timeout_s)

    # -- routing -----------------------------------------------------------------------------------------

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> Any:
        """The Metadata response for these topics; for all of them, if None."""
        from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response = self.send(MetadataRequest(topics=asked, allow_auto_topic_creation=auto_create))
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        return response

    def topic(self, name: str, *, auto_create: bool = False) -> Any:
        """One topic's metadata, once all its partitions have a leader.

        Raises:
            KafkaError: there is no such topic.
        """
        for is_last in self.attempts():
            topic = self.metadata([name], auto_create=auto_create).topics[0]
            code = topic.error_code or next((p.error_code for p in topic.partitions if p.error_code), 0)
            if not code:
                return topic
            is_being_created = auto_create and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if is_last or not (code in RETRIABLE or is_being_created):
                if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    from pykafka_broker.cli.suggestions import unknown_topic

                    raise unknown_topic(self, name)
                raise self.topic_error(code, name)
        raise AssertionError("attempts end with a last one")

    @staticmethod
    def topic_error(code: int, name: str) -> KafkaError:
        """The error of a topic, with its name where Kafka's text lacks it."""
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return KafkaError(ErrorCode(code), f"Topic '{name}' does not exist.")
        return KafkaError(ErrorCode(code), f"Topic '{name}': {ErrorCode(code).message}")

    def leaders(self, topic: str, *, auto_create: bool = False) -> dict[int, int]:
        """Partition -> the broker that leads it."""
        partitions = self.topic(topic, auto_create=auto_create).partitions
        return {p.partition_index: p.leader_id for p in sorted(partitions, key=lambda p: p.partition_index)}

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group."""
        from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest

        for is_last in self.attempts():
            connection = self.connection()
            if connection.versions.get(FindCoordinatorRequest.api_key, (0, 0))[1] >= 4:  # type: ignore[attr-defined]
                request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
                found = connection.send(request).coordinators[0]
            else:
                found = connection.send(FindCoordinatorRequest(key=group))
            if not found.error_code:
                self.brokers.setdefault(found.node_id, (found.host, found.port))
                node_id: int = found.node_id
                return node_id
            if is_last or found.error_code not in RETRIABLE:
                raise KafkaError(ErrorCode(found.error_code), found.error_message)
        raise AssertionError("attempts end with a last one")

    def attempts(self) -> Iterator[bool]:
        """Try, and try again for as long as the time-out allows; True stands for the last attempt."""
        deadline = time.monotonic() + self.timeout_s
        while (started := time.monotonic()) < deadline - RETRY_PAUSE_S:
            yield False
            time.sleep(max(0.0, RETRY_PAUSE_S - (time.monotonic() - started)))
        yield True


def check(code: int, message: str | None = None) -> None:
    """Raise what an error code of a response means.

    Raises:
        KafkaError: unless the code is 0.
    """
    if code:
        raise KafkaError(ErrorCode(code), message or None)


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """The brokers of a `host:port,host:port` list.

    Raises:
        ValueError: there is none, or one is not HOST:PORT.
    """
    addresses = []
    for entry in text.split(","):
        host, colon, port = entry.strip().rpartition(":")
        if not colon or not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
            raise ValueError(f"{entry.strip()!r} is not HOST:PORT")
        addresses.append((host.strip("[]") or "127.0.0.1", int(port)))
    return addresses
