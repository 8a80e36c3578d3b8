"""A served connection whose peer is the test: no socket, no real time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from pykafka_broker.apis.api import Api, ErrorResponse, handles
from pykafka_broker.client.core.frames import read_response, request_frame
from pykafka_broker.network.connection import Connection
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.identity import Anonymous, Authentication
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.memory import RequestMemory, UnsentAnswers
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_transport import MemoryTransport

Handler = Callable[[Any, Any], Any]

VERSIONS = {
    ProduceRequest: 7,
    FetchRequest: 12,
    HeartbeatRequest: 4,
    ListGroupsRequest: 3,
    ApiVersionsRequest: 3,
}

API_VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id=None)
LIST_GROUPS = ListGroupsRequest()
FETCH = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[])


def produce_of(records: bytes | bytearray, acks: int = 1) -> ProduceRequest:
    """A produce request for one partition."""
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1_000, topic_data=[topic])


def frame(payload: bytes) -> bytes:
    """`payload` with its length before it."""
    return struct.pack(">i", len(payload)) + payload


def serve_api_versions(request: Any, ctx: Any) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=0, api_keys=[], throttle_time_ms=0)


def apis(
    api_versions: Handler = serve_api_versions,
    heartbeat: Handler | None = None,
    list_groups: Handler | None = None,
    produce: Handler | None = None,
    fetch: Handler | None = None,
    error_response: ErrorResponse | None = None,
) -> list[Api[Any]]:
    """An API table with these handlers."""
    served = [handles(ApiVersionsRequest, versions="0-4", needs=())(api_versions)]
    if heartbeat is not None:
        served.append(
            handles(HeartbeatRequest, versions="0-4", needs=(), error_response=error_response)(heartbeat)
        )
    if list_groups is not None:
        served.append(handles(ListGroupsRequest, versions="0-5", needs=())(list_groups))
    if produce is not None:
        served.append(handles(ProduceRequest, versions="3-13", needs=(), advertised_min_version=0)(produce))
    if fetch is not None:
        served.append(handles(FetchRequest, versions="4-18", needs=())(fetch))
    return served


class Peer:
    """Speaks the protocol from the client's side: numbers requests, and reads answers back."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[int, int]] = {}

    def request(self, message: Any, version: int | None = None, client_id: str | None = "tester") -> bytes:
        """The frame of the next request; correlation ids count from 1."""
        version = VERSIONS[type(message)] if version is None else version
        key = message.api_key
        correlation_id = len(self._asked) + 1
        self._asked[correlation_id] = key, version
        return request_frame(message, version, correlation_id, client_id)

    def requests(self, *messages: Any) -> bytes:
        """Several requests, one after the other."""
        return b"".join(self.request(message) for message in messages)

    def answers(self, data: bytes) -> list[tuple[int, Any]]:
        """Correlation id and message of every answer in `data`."""
        found = []
        end = 0
        while end < len(data):
            start = end + 4
            size = int.from_bytes(data[end:start], "big")
            end = start + size
            body = data[start:end]
            assert len(body) == size, "the last answer is cut"
            key, version = self._asked[int.from_bytes(body[:4], "big")]
            response = read_response(key, version, body)
            assert response.end == len(body)
            found.append((response.correlation_id, response.message))
        return found


class Served:
    """A connection and its peer; keywords beside the first few are handlers, as in `apis`."""

    def __init__(
        self,
        clock: VirtualClock | None = None,
        limits: ConnectionLimits | None = None,
        shared: Shared | None = None,
        request_memory: RequestMemory | None = None,
        unsent: UnsentAnswers | None = None,
        node: Any = None,
        dispatch: Dispatch[Any] | None = None,
        authentication: Authentication | None = None,
        **handlers: Handler,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.shared = shared or Shared(
            self.clock, limits=limits, request_memory=request_memory, unsent=unsent
        )
        dispatch = dispatch or Dispatch(apis(**handlers))
        accepted = Accepted("PLAINTEXT", ("10.0.0.7", 50123), on_lost=lambda: None)
        self.connection = Connection(self.shared, node, dispatch, authentication or Anonymous(), accepted)
        self.transport = MemoryTransport(self.connection)
        self.peer = Peer()

    def send(self, *messages: Any) -> None:
        """The peer sends these requests at once."""
        self.transport.feed(self.peer.requests(*messages))

    def answers(self) -> list[tuple[int, Any]]:
        """The answers so far."""
        return self.peer.answers(bytes(self.transport.written))

    def answered(self) -> list[int]:
        """The correlation ids that have been answered so far, in the order of the answers."""
        return [correlation_id for correlation_id, _ in self.answers()]


class Doors:
    """Doors at which handlers under test wait; the test opens one after the other."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Any]] = []

    def wait(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return future

    def open(self, value: Any = None, index: int = 0) -> None:
        self.waiting.pop(index).set_result(value)
