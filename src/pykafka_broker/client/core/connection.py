"""One connection to one broker, without the socket.

The life of a connection:

    1. The shell refreshes the bearer tokens of the login if they are stale, and connects. TLS, which changes
       the bytes and not the protocol, belongs to the shell's stream.
    2. The shell runs `opening()`. It asks for the versions that the broker serves, and authenticates with the
       login of the identity's security, if that has one (`authentication.py`).
    3. `send()` turns requests into frames, `receive()` turns frames into responses. Up to `MAX_IN_FLIGHT`
       requests may be in flight; brokers answer in the order of the requests.

A caller that knows which versions it sends may leave the second step out.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pykafka_broker.client.core.conversation import Ask, Conversation
from pykafka_broker.client.core.frames import (
    correlation_id_of,
    has_response,
    read_response,
    request_frame,
)
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.fields import api_key_of, schema_of
from pykafka_broker.protocol.frames import LENGTH_BYTES
from pykafka_broker.protocol.messages import API_NAMES, API_VERSIONS_KEY
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

    from pykafka_broker.client.core.authentication import Login, TokenLogin, TokenSource

SOFTWARE_NAME = "pykafka-broker"
#: The first version with the client's name; brokers that do not know it answer in version 0.
API_VERSIONS_VERSION = 3
#: The most requests without an answer; a broker that leaves more unanswered is taken for dead.
MAX_IN_FLIGHT = 1_000
MAX_CORRELATION_ID = (1 << 31) - 1
#: The key of Vote, which controllers alone serve.
VOTE = 52


class ClientSecurity(NamedTuple):
    """How a client authenticates itself and its broker."""

    #: The user; None without SASL.
    login: Login | TokenLogin | None = None
    #: Returns the TLS context of the next connection; None without TLS.
    tls: Callable[[], SSLContext] | None = None

    @property
    def stale_tokens(self) -> TokenSource | None:
        """The tokens to refresh before the next connection; None if there is nothing to refresh."""
        tokens = None if self.login is None else self.login.tokens
        return tokens if tokens is not None and tokens.is_stale else None

    @property
    def protocol(self) -> str:
        """The value of `security.protocol`."""
        transport = "PLAINTEXT" if self.tls is None else "SSL"
        return transport if self.login is None else f"SASL_{transport}"


class Identity(NamedTuple):
    """The identity of a client towards the broker."""

    client_id: str | None = SOFTWARE_NAME
    software_version: str = "unknown"
    #: The name of this side in errors.
    kind: str = "client"
    #: None without SASL and TLS.
    security: ClientSecurity | None = None


CLIENT = Identity()


class Sent(NamedTuple):
    """A request in flight; `is_answered` is False if the broker will not answer it (acks=0)."""

    frame: bytes
    correlation_id: int
    is_answered: bool


class Received(NamedTuple):
    """A response, and the request that it answers."""

    correlation_id: int
    message: Any


class _Expected(NamedTuple):
    correlation_id: int
    api_key: int
    version: int


class ConnectionState:
    """The client's state of one connection."""

    __slots__ = (
        "_correlation_id",
        "_expected",
        "identity",
        "metadata_offset",
        "peer",
        "received_bytes",
        "sent_bytes",
        "versions",
    )

    def __init__(self, peer: str, identity: Identity) -> None:
        #: The broker's address, for errors.
        self.peer = peer
        self.identity = identity
        #: API key -> the lowest and the highest version that the broker serves; empty before `opening()`.
        self.versions: Mapping[int, tuple[int, int]] = {}
        #: The offset of the metadata log that the broker had published at the `opening()`: the epoch of its
        #: finalized features; -1 if unknown.
        self.metadata_offset = -1
        #: The bytes of requests and of responses so far.
        self.sent_bytes = 0
        self.received_bytes = 0
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()

    @property
    def in_flight(self) -> int:
        """The number of requests without an answer yet."""
        return len(self._expected)

    @property
    def oldest_api_key(self) -> int:
        """The API key of the oldest request that has no answer yet."""
        return self._expected[0].api_key

    def opening(self) -> Conversation[None]:
        """The exchange before the first request of the caller: the broker's versions, and the login.

        Raises:
            KafkaError: the broker refuses.
        """
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=self.identity.software_version
        )
        response: ApiVersionsResponse = (yield Ask(request, version=API_VERSIONS_VERSION)).response
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            response = (yield Ask(request, version=0)).response
        check(response.error_code)
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self.metadata_offset = response.finalized_features_epoch
        security = self.identity.security
        if security is not None and security.login is not None:
            yield from security.login.authenticating()

    def newest_version(self, request: object, at_most: int | None = None) -> int:
        """The newest version of a request that both sides know, and that is not newer than `at_most`.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, there is none.
        """
        api_key, ours = api_key_of(request), schema_of(request).versions
        low, high = self.versions.get(api_key, (0, -1))
        version = min(high, ours[-1])
        if at_most is not None:
            version = min(version, at_most)
        if version < max(low, ours[0]):
            name, kind = API_NAMES[api_key], self.identity.kind
            if VOTE in self.versions:
                text = f"{self.peer} is for controllers, which do not serve {name}: name a broker's address"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.peer} does not serve {name} in a version this {kind} knows",
            )
        return version

    def send(self, request: object, version: int | None = None) -> Sent:
        """The frame of a request; by default in the newest version that both sides know.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, the sides have no version in common; INVALID_REQUEST, a value
                does not fit its field: it is too long, too large, or no text.
            ConnectionError: too many requests are unanswered.
        """
        api_key = api_key_of(request)
        if version is None:
            version = self.newest_version(request)
        if len(self._expected) >= MAX_IN_FLIGHT:
            raise ConnectionError(f"{self.peer} has not answered the last {MAX_IN_FLIGHT} requests")
        correlation_id = self._correlation_id % MAX_CORRELATION_ID + 1
        try:
            frame = request_frame(request, version, correlation_id, self.identity.client_id)
        except (ValueError, struct.error) as error:
            name = API_NAMES[api_key]
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Kafka's {name} cannot say this: {error}") from None
        self._correlation_id = correlation_id
        self.sent_bytes += len(frame)
        is_answered = has_response(request)
        if is_answered:
            self._expected.append(_Expected(correlation_id, api_key, version))
        return Sent(frame, correlation_id, is_answered)

    def receive(self, frame: Buffer) -> Received:
        """The response in a frame, which answers the oldest request without an answer.

        Raises:
            ProtocolError: it answers another request, or is malformed.
        """
        self.received_bytes += LENGTH_BYTES + len(frame)
        correlation_id = correlation_id_of(frame)
        if not self._expected or self._expected[0].correlation_id != correlation_id:
            raise ProtocolError(f"{self.peer} answered another request than the one asked")
        _, api_key, version = self._expected.popleft()
        if api_key == API_VERSIONS_KEY and _is_unsupported_version(frame):
            # A broker that does not know the version of the request answers in version 0.
            version = 0
        return Received(correlation_id, read_response(api_key, version, frame).message)


def _is_unsupported_version(frame: Buffer) -> bool:
    """Whether this ApiVersions response has the error UNSUPPORTED_VERSION, right after header v0."""
    return int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION


def check(code: int, message: str | None = None) -> None:
    """Raise the error of a response.

    Raises:
        KafkaError: the code is not 0.
    """
    if code:
        raise KafkaError(error_of(code), message or None)
