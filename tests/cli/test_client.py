"""The commands' client, against brokers that are old, slow, or not brokers at all."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from pykafka_broker.cli import progress
from pykafka_broker.cli.client import Client, Connection, parse_addresses
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run

Answer = Callable[[int, int, int], "bytes | None"]
Serve = Callable[[Answer], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that answer each request with bytes of their choice, or hang up on None."""
    servers: list[socket.socket] = []
    threads = []

    def run(answer: Answer) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        thread = threading.Thread(target=serve_one, args=(server, answer))
        thread.start()
        threads.append(thread)
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield run
    for thread in threads:
        thread.join()
    for server in servers:
        server.close()


def serve_one(server: socket.socket, answer: Answer) -> None:
    """One connection, until either side has enough of it."""
    server.settimeout(60)
    connection, _ = server.accept()
    with connection, suppress(ConnectionError):
        while head := connection.recv(4):
            size = struct.unpack(">i", head)[0]
            request = connection.recv(size, socket.MSG_WAITALL)
            api_key, version, correlation_id = struct.unpack_from(">hhi", request)
            response = answer(api_key, version, correlation_id)
            if response is None:
                return
            connection.sendall(response)


def framed(correlation_id: int, body: bytes) -> bytes:
    payload = struct.pack(">i", correlation_id) + body
    return struct.pack(">i", len(payload)) + payload


def versions(*apis: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in apis]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def test_an_old_broker_is_asked_again_in_version_0(serve: Serve) -> None:
    asked = []

    def old_broker(api_key: int, version: int, correlation_id: int) -> bytes:
        asked.append((api_key, version))
        if api_key == 18:
            # In version 0, whatever was asked.
            error = ErrorCode.UNSUPPORTED_VERSION if version else 0
            return framed(correlation_id, encode(versions((3, 0, 5), (18, 0, 0), error_code=error), 0))
        answer = MetadataResponse(brokers=[], topics=[], cluster_id="c")
        return framed(correlation_id, encode(answer, version))

    with Client(serve(old_broker)) as client:
        assert client.metadata([]).cluster_id == "c"
    assert asked == [(18, 3), (18, 0), (3, 5)]


def test_a_request_the_broker_does_not_serve_is_refused_before_it_is_sent(serve: Serve) -> None:
    address = serve(lambda _, version, number: framed(number, encode(versions((18, 0, 4)), version)))
    with (
        Client(address) as client,
        pytest.raises(KafkaError, match="does not serve Metadata in a version this command knows") as error,
    ):
        client.send(MetadataRequest(topics=None))
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_hangs_up_is_an_error(serve: Serve) -> None:
    address = serve(lambda *_: None)
    with pytest.raises(ConnectionError, match="closed the connection"):
        Connection("127.0.0.1", int(address.partition(":")[2]), 5)


@pytest.mark.parametrize("kind", [BrokenPipeError, ConnectionResetError])
def test_a_broker_that_breaks_the_connection_off_is_not_taken_for_the_output(
    run: Run, monkeypatch: pytest.MonkeyPatch, broker: str, kind: type[OSError]
) -> None:
    """A broken pipe ended the command with status 1 and without a word."""

    def broken_off(_: Connection) -> bytes:
        raise kind

    monkeypatch.setattr(Connection, "_read_frame", broken_off)
    told = f"Error: {broker} closed the connection; `pykafka-broker doctor {broker}` may tell why\n"
    assert run("topics", "list") == (1, "", told)


def test_a_broker_that_does_not_answer_is_not_waited_for_for_ever(serve: Serve) -> None:
    address = serve(lambda *_: b"")
    with pytest.raises(ConnectionError, match="did not answer ApiVersions in time"):
        Connection("127.0.0.1", int(address.partition(":")[2]), 0.05)


def test_a_person_is_told_what_is_waited_for(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[int], None]
) -> None:
    address = serve(lambda *_: b"")
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    terminal(80)
    result = run("topics", "list", "-b", address, "--timeout", "0.5")
    assert result.status == 1
    # What is read here has \n for \r, and the error is folded.
    _, _, told = result.err.rpartition(f"Waiting for {address} ...\n\x1b[K")
    assert (
        told.split()
        == (
            f"Error: {address} did not answer ApiVersions in time; "
            f"`pykafka-broker doctor {address}` may tell why"
        ).split()
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request", "announces a response of"),
        (framed(99, b""), "answered another request"),
        (struct.pack(">i", -1), "announces a response of -1 bytes"),
    ],
    ids=["another protocol", "another request", "no size"],
)
def test_what_is_no_broker_is_told_apart(serve: Serve, answer: bytes, reason: str) -> None:
    address = serve(lambda *_: answer)
    with pytest.raises(ProtocolError, match=reason):
        Connection("127.0.0.1", int(address.partition(":")[2]), 5)


def test_a_connection_on_which_an_exchange_was_cut_short_is_not_used_again(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that is still to come was taken for that of the next request."""
    with Client(broker) as client:
        first = client.connection()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Connection, "_read_frame", interrupted)
            client.metadata([])
        assert len(client.metadata([]).brokers) == 1
        assert (first.is_closed, client.connection().is_closed) == (True, False)


def interrupted(_: Connection) -> bytes:
    raise KeyboardInterrupt


def test_the_next_bootstrap_server_is_tried_when_one_is_away(broker: str) -> None:
    with Client(f"127.0.0.1:{free_port()},{broker}") as client:
        assert len(client.metadata([]).brokers) == 1


def test_a_broker_nobody_knows_cannot_be_asked(broker: str) -> None:
    with Client(broker) as client, pytest.raises(KafkaError, match="Broker 7 is not available"):
        client.send(MetadataRequest(topics=None), node_id=7)


def test_addresses_are_lists_of_hosts_and_ports() -> None:
    assert parse_addresses("a:1, [::1]:2,:3") == [("a", 1), ("::1", 2), ("127.0.0.1", 3)]


@pytest.mark.parametrize(
    ("answer", "seems"),
    [
        (b"HTTP/1.1 400 Bad Request", "announces a response of 1213486160 bytes, and seems to speak HTTP"),
        (b"\x15\x03\x01\x00\x02\x02F", "announces a response of 352518400 bytes, and seems to speak TLS"),
        (None, "closed the connection"),
    ],
    ids=["HTTP", "TLS", "nothing"],
)
def test_who_has_the_wrong_port_is_shown_the_way_to_the_doctor(
    run: Run, serve: Serve, answer: bytes | None, seems: str
) -> None:
    address = serve(lambda *_: answer)
    told = "" if answer is None else "The broker sent what is not Kafka's protocol: "
    assert run("topics", "list", "-b", address) == (
        1,
        "",
        f"Error: {told}{address} {seems}; `pykafka-broker doctor {address}` may tell why\n",
    )
