"""The client of programs that wait, against brokers that are old, slow, or not brokers at all."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pykafka_broker.client import blocking
from pykafka_broker.client.blocking import (
    BlockingConnection,
    Client,
    ConnectTimeout,
    FrameSocket,
    ResponseBuffer,
)
from pykafka_broker.client.core.addresses import Address, parse_address
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.client.core.frames import framed
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.frames import LENGTH_BYTES
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from pykafka_broker.protocol.messages.produce import ProduceRequest
from tests.support.scripted_broker import Serve, response_frame, scripted_brokers, versions

METADATA, API_VERSIONS = 3, 18


@pytest.fixture
def serve() -> Iterator[Serve]:
    with scripted_brokers() as serve:
        yield serve


def answer_of(address: str, port: int | None = None) -> MetadataResponse:
    """A cluster of this one broker, which calls itself 1."""
    here = parse_address(address)
    broker = MetadataResponseBroker(node_id=1, host=here.host, port=port or here.port)
    return MetadataResponse(brokers=[broker], topics=[], cluster_id="c")


def test_an_old_broker_is_asked_again_in_version_0(serve: Serve) -> None:
    asked = []

    def old_broker(api_key: int, version: int, correlation_id: int) -> bytes:
        asked.append((api_key, version))
        if api_key == API_VERSIONS:
            # In version 0, whatever was asked.
            error = ErrorCode.UNSUPPORTED_VERSION if version else 0
            return response_frame(
                correlation_id, encode(versions((3, 0, 5), (18, 0, 0), error_code=error), 0)
            )
        answer = MetadataResponse(brokers=[], topics=[], cluster_id="c")
        return response_frame(correlation_id, encode(answer, version))

    with Client(serve(old_broker)) as client:
        assert client.metadata([]).cluster_id == "c"
    assert asked == [(18, 3), (18, 0), (3, 5)]


def test_a_request_the_broker_does_not_serve_is_refused_before_it_is_sent(serve: Serve) -> None:
    address = serve(lambda _, version, number: response_frame(number, encode(versions((18, 0, 4)), version)))
    with (
        Client(address, identity=Identity(kind="command")) as client,
        pytest.raises(KafkaError, match="does not serve Metadata in a version this command knows") as error,
    ):
        client.send(MetadataRequest(topics=None))
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_request_that_wants_no_response_does_not_wait_for_one(serve: Serve) -> None:
    def broker(api_key: int, version: int, correlation_id: int) -> bytes:
        if api_key == API_VERSIONS:
            return response_frame(correlation_id, encode(versions((0, 3, 8), (18, 0, 4)), version))
        return b""

    with Client(serve(broker)) as client:
        assert client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[])) is None


def test_a_broker_that_hangs_up_is_an_error(serve: Serve) -> None:
    address = serve(lambda *_: None)
    with pytest.raises(ConnectionError, match="closed the connection"):
        BlockingConnection(parse_address(address), 5)


def test_a_broker_that_does_not_answer_is_not_waited_for_for_ever(serve: Serve) -> None:
    address = serve(lambda *_: b"")
    with pytest.raises(ConnectionError, match="did not answer ApiVersions in time"):
        BlockingConnection(parse_address(address), 0.05)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request", "announces a response of"),
        (response_frame(99, b""), "answered another request"),
        (struct.pack(">i", -1), "announces a response of -1 bytes"),
    ],
    ids=["another protocol", "another request", "no size"],
)
def test_what_is_no_broker_is_told_apart(serve: Serve, answer: bytes, reason: str) -> None:
    address = serve(lambda *_: answer)
    with pytest.raises(ProtocolError, match=reason):
        BlockingConnection(parse_address(address), 5)


def test_a_connection_is_closed_when_its_broker_is_none(serve: Serve) -> None:
    def broker(api_key: int, version: int, correlation_id: int) -> bytes:
        if api_key == API_VERSIONS:
            return response_frame(correlation_id, encode(versions((3, 0, 5), (18, 0, 4)), version))
        return response_frame(99, b"")

    connection = BlockingConnection(parse_address(serve(broker)), 5)
    with pytest.raises(ProtocolError, match="answered another request"):
        connection.send(MetadataRequest(topics=None))
    assert connection.is_closed


def test_a_broker_of_the_cluster_is_reached_at_its_own_address(serve: Serve) -> None:
    asked = []

    def broker(name: str, tells: list[str]) -> str:
        def answer(api_key: int, version: int, correlation_id: int) -> bytes:
            asked.append((name, api_key))
            if api_key == API_VERSIONS:
                return response_frame(correlation_id, encode(versions((3, 0, 5), (18, 0, 4)), version))
            return response_frame(correlation_id, encode(answer_of(tells[0]), version))

        return serve(answer)

    advertised: list[str] = []
    bootstrap = broker("bootstrap", advertised)
    advertised.append(broker("node 1", advertised))
    with Client(bootstrap) as client:
        for _ in range(2):
            client.send(MetadataRequest(topics=None), node_id=1)
    assert asked == [
        ("bootstrap", API_VERSIONS),
        ("bootstrap", METADATA),
        ("node 1", API_VERSIONS),
        ("node 1", METADATA),
        ("node 1", METADATA),
    ]


def test_an_address_that_is_paused_does_not_cost_the_time_out(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broker(api_key: int, version: int, correlation_id: int) -> bytes:
        if api_key == API_VERSIONS:
            return response_frame(correlation_id, encode(versions((3, 0, 5), (18, 0, 4)), version))
        return response_frame(correlation_id, encode(answer_of("127.0.0.1:1"), version))

    with socket.create_server(("127.0.0.1", 0)) as paused:
        port = paused.getsockname()[1]

        def connect(address: Address, _timeout_s: float, **options: Any) -> BlockingConnection:
            """For the paused one a moment is over at once; the other may take its time on a busy machine."""
            is_hurried = address.port == port and options["setup_timeout_s"] is not None
            return BlockingConnection(address, setup_timeout_s=0.01 if is_hurried else None)

        monkeypatch.setattr(blocking, "BlockingConnection", connect)
        with Client(f"127.0.0.1:{port},{serve(broker)}", timeout_s=3600) as client:
            assert client.metadata([]).cluster_id == "c"


def test_addresses_that_are_silent_share_the_time_out_and_those_that_refuse_get_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocking, "NEXT_ADDRESS_AFTER_S", 0.01)
    setups: list[float | None] = []

    def connect(*_: object, setup_timeout_s: float | None, **__: object) -> BlockingConnection:
        setups.append(setup_timeout_s)
        raise ConnectTimeout if len(setups) != 2 else ConnectionError

    monkeypatch.setattr(blocking, "BlockingConnection", connect)
    with Client("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", timeout_s=30) as client, pytest.raises(ConnectTimeout):
        client.connection()
    assert setups == [0.01, 0.01, 0.01, 15, 15]


def test_attempts_end_with_the_last_one() -> None:
    client = Client("127.0.0.1:1", timeout_s=0.15)
    assert list(client.attempts()) == [False, True]


def failing_at_first(*errors: Exception) -> Callable[[], str]:
    """A call that raises these errors, and then succeeds."""
    left = list(errors)

    def once() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return once


def test_a_call_is_repeated_while_its_errors_are_temporary() -> None:
    client = Client("127.0.0.1:1", timeout_s=30)
    client.brokers.add(1, parse_address("127.0.0.1:1"))
    moved = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    gone = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
    assert client.retrying(failing_at_first(moved, ConnectionError("refused"), gone)) == "done"
    with pytest.raises(KafkaError, match="larger"):
        client.retrying(failing_at_first(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "larger")))


def test_a_cluster_that_never_answered_is_given_up_at_once() -> None:
    client = Client("127.0.0.1:1", timeout_s=30)
    with pytest.raises(ConnectionError, match="Cannot connect to"):
        client.retrying(lambda: client.metadata([]))


def test_other_brokers_are_asked_when_the_bootstrap_servers_have_stopped(serve: Serve) -> None:
    def broker(name: str) -> str:
        def answer(api_key: int, version: int, correlation_id: int) -> bytes:
            if api_key == API_VERSIONS:
                return response_frame(correlation_id, encode(versions((3, 0, 5), (18, 0, 4)), version))
            response = answer_of(other)
            response.cluster_id = name
            return response_frame(correlation_id, encode(response, version))

        return serve(answer)

    other = ""
    other = broker("other")
    with Client(broker("bootstrap")) as client:
        assert client.metadata([]).cluster_id == "bootstrap"
        client.connection().close()
        client.bootstrap_servers = [parse_address("127.0.0.1:1")]
        assert client.metadata([]).cluster_id == "other"


# -- the bytes below
# ------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_frames_are_returned_as_they_came(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    frames = FrameSocket(ours, "a broker")
    theirs.sendall(framed(b"one") + framed(b"two" * 30))
    assert [frames.receive(), frames.receive()] == [b"one", b"two" * 30]


def test_what_was_not_received_is_left_in_the_socket(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    frames = FrameSocket(ours, "a broker", LENGTH_BYTES)
    theirs.sendall(framed(b"one") + b"next")
    frames.receive()
    assert ours.recv(100, socket.MSG_PEEK) == b"next"


def test_a_large_landing_receives_many_frames_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    frames = FrameSocket(ours, "a broker", 1024)
    theirs.sendall(framed(b"one") + framed(b"two"))
    theirs.close()
    assert frames.receive() == b"one"
    ours.close()
    assert frames.receive() == b"two"


def test_any_bytes_can_be_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    FrameSocket(ours, "a broker").send_bytes(b"GET / HTTP/1.1")
    assert theirs.recv(100) == b"GET / HTTP/1.1"


def test_the_end_of_a_connection_within_a_frame_is_an_error(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(framed(b"whole")[:-1])
    theirs.close()
    with pytest.raises(ConnectionError, match="a broker closed the connection"):
        FrameSocket(ours, "a broker").receive()


@pytest.mark.parametrize("size_bytes", [4, 9, 64])
def test_a_buffer_receives_responses_into_the_same_memory(
    pair: tuple[socket.socket, socket.socket], size_bytes: int
) -> None:
    ours, theirs = pair
    buffer = ResponseBuffer(size_bytes)
    for frame in (b"one", b"two" * 7, b"3"):
        theirs.sendall(framed(frame))
        assert buffer.receive(ours) == framed(frame)


def test_a_buffer_receives_several_responses_together(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    both = framed(b"one") + framed(b"two" * 7)
    theirs.sendall(both)
    assert ResponseBuffer(16).receive(ours, count=2) == both


def test_a_buffer_waits_for_the_rest_of_a_response(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    whole = framed(b"one" * 9)
    theirs.sendall(whole[:2])
    rest = threading.Timer(0, theirs.sendall, [whole[2:]])
    rest.start()
    assert ResponseBuffer().receive(ours) == whole
    rest.join()


def test_a_buffer_does_not_take_one_response_for_another(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(framed(b"one") + framed(b"two"))
    with pytest.raises(ProtocolError, match="sent more responses than it was asked for"):
        ResponseBuffer().receive(ours)
    theirs.sendall(struct.pack(">i", -1))
    with pytest.raises(ProtocolError, match="announces a response of -1 bytes"):
        ResponseBuffer().receive(ours)
    theirs.sendall(framed(b"three")[:-1])
    theirs.close()
    with pytest.raises(ConnectionError, match="closed the connection"):
        ResponseBuffer().receive(ours)
