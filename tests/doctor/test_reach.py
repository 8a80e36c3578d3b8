"""What answers at an address: real sockets on this machine, each with a server of another kind."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.doctor.findings import Level
from pykafka_broker.doctor.reach import (
    MOST_AT_ONCE,
    Address,
    Answer,
    Kind,
    StartingBroker,
    about_answer,
    about_listener,
    all_at_once,
    probe,
)
from tests.cli.conftest import RunningBroker

PATIENCE_S = 20.0
#: For servers that never answer: each of the three languages waits for so long.
IMPATIENCE_S = 0.2
#: Keys of APIs.
PRODUCE, METADATA, VOTE = 0, 3, 52


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """The address of a server that does this with each of its connections, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, contextlib.suppress(OSError):
                        serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def until_closed(connection: socket.socket) -> None:
    while connection.recv(4096):
        continue


@pytest.fixture(scope="module")
def certified() -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that only a test believes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    return context


def test_a_broker_is_recognised(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker:
        assert probe(parse_address(broker.address), PATIENCE_S) == Answer(Kind.KAFKA)


def test_a_tls_server_is_recognised(certified: ssl.SSLContext) -> None:
    def shake_hands(connection: socket.socket) -> None:
        with certified.wrap_socket(connection, server_side=True) as secured:
            until_closed(secured)

    with serving(shake_hands) as address:
        assert probe(address, PATIENCE_S) == Answer(Kind.TLS)


def test_a_tls_server_that_only_closes_on_plain_text_is_recognised(certified: ssl.SSLContext) -> None:
    def close_on_plain_text(connection: socket.socket) -> None:
        if connection.recv(1, socket.MSG_PEEK) == b"\x16":
            with certified.wrap_socket(connection, server_side=True) as secured:
                until_closed(secured)

    with serving(close_on_plain_text) as address:
        assert probe(address, PATIENCE_S) == Answer(Kind.TLS)


def test_a_tls_server_that_wants_a_certificate_of_the_client_is_recognised() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # which refuses within the handshake
    context.verify_mode = ssl.CERT_REQUIRED
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)

    def shake_hands(connection: socket.socket) -> None:
        if connection.recv(1, socket.MSG_PEEK) == b"\x16":
            with context.wrap_socket(connection, server_side=True) as secured:
                until_closed(secured)

    with serving(shake_hands) as address:
        assert probe(address, PATIENCE_S) == Answer(Kind.TLS)


def test_a_web_server_is_recognised() -> None:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keep standard error empty."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert probe(("127.0.0.1", server.server_port), PATIENCE_S) == Answer(Kind.HTTP)
        server.shutdown()
        thread.join()


def test_a_web_server_that_waits_for_the_end_of_a_line_is_recognised() -> None:
    def answer_requests(connection: socket.socket) -> None:
        received = b""
        while not received.endswith(b"\r\n\r\n") and (data := connection.recv(4096)):
            received += data
        if received.startswith(b"GET "):
            connection.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")

    with serving(answer_requests) as address:
        assert probe(address, IMPATIENCE_S) == Answer(Kind.HTTP)


def test_a_greeting_of_another_protocol_is_quoted() -> None:
    def greet(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        until_closed(connection)

    with serving(greet) as address:
        answer = probe(address, PATIENCE_S)
    assert answer == Answer(Kind.OTHER, "SSH-2.0-OpenSSH_9.2p1")
    assert "SSH-2.0" in about_answer(address, answer).message


def test_a_server_that_closes_is_told_from_one_that_stays_silent() -> None:
    with serving(lambda connection: None) as address:
        assert probe(address, PATIENCE_S) == Answer(Kind.CLOSES)
    with serving(until_closed) as address:
        assert probe(address, IMPATIENCE_S) == Answer(Kind.SILENT)


def test_an_address_without_a_server_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    answer = probe(address, PATIENCE_S)
    assert answer == Answer(Kind.REFUSED)
    finding = about_answer(address, answer)
    assert finding.level is Level.PROBLEM
    assert f"pykafka-broker start --listen 127.0.0.1:{address[1]}" in finding.remedy


def test_at_one_of_several_addresses_no_new_broker_is_proposed() -> None:
    finding = about_answer(("127.0.0.1", 9092), Answer(Kind.REFUSED), is_only=False)
    assert finding.remedy.endswith(
        " Start the broker of this address again as it was started before, or look at its log."
    )
    assert "start --listen" not in finding.remedy


def test_where_a_broker_is_starting_no_other_one_is_proposed() -> None:
    starting = StartingBroker("process 17 (pykafka-broker)", "127.0.0.1:9093")
    finding = about_answer(("127.0.0.1", 9092), Answer(Kind.REFUSED), starting=starting)
    assert finding.message == (
        "Nothing listens at 127.0.0.1:9092 yet: process 17 (pykafka-broker) is to, and is still starting."
    )
    assert "start --listen" not in finding.remedy
    assert "pykafka-broker quorum describe --bootstrap-controller 127.0.0.1:9093" in finding.remedy


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 64 + ".invalid"])
def test_a_host_that_no_resolver_knows_is_named(host: str) -> None:
    answer = probe((host, 9092), PATIENCE_S)
    assert answer.kind is Kind.UNKNOWN_HOST
    assert host in about_answer((host, 9092), answer).message


@pytest.mark.parametrize("kind", Kind)
def test_every_answer_has_a_sentence_and_all_but_a_brokers_a_remedy(kind: Kind) -> None:
    finding = about_answer(("::1", 9092), Answer(kind, "detail"))
    assert finding.message.endswith(".")
    assert (finding.level is Level.OK) == (finding.remedy == "") == (kind is Kind.KAFKA)


def test_the_process_behind_a_wrong_answer_is_named() -> None:
    finding = about_answer(("127.0.0.1", 80), Answer(Kind.HTTP), "nginx, process 17")
    assert finding.message == "127.0.0.1:80 is a web server (nginx, process 17): it answers in HTTP."


def test_a_listener_of_controllers_is_told_from_one_for_clients() -> None:
    address = ("127.0.0.1", 9093)
    assert about_listener(address, [PRODUCE, METADATA], None) is None
    controllers = about_listener(address, [VOTE], None)
    assert controllers is not None
    assert "listener for controllers" in controllers.message


def test_a_listener_that_closes_when_asked_for_metadata_wants_authentication() -> None:
    finding = about_listener(
        ("127.0.0.1", 9094), [METADATA], ConnectionError("127.0.0.1:9094 closed the connection")
    )
    assert finding is not None
    assert "SASL" in finding.message


def test_a_broker_without_an_answer_to_metadata_is_a_problem() -> None:
    finding = about_listener(("127.0.0.1", 9094), [METADATA], ConnectionError("did not answer in time"))
    assert finding is not None
    assert finding.message == "127.0.0.1:9094 does not give its metadata: did not answer in time."


def test_a_server_that_wants_a_certificate_of_the_client_is_recognised() -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)

    def shake_hands(connection: socket.socket) -> None:
        with server.wrap_socket(connection, server_side=True) as secured:
            until_closed(secured)

    with serving(shake_hands) as address:
        assert probe(address, PATIENCE_S, lambda: client) == Answer(
            Kind.NO_AGREEMENT, "tlsv13 alert certificate required"
        )


def test_what_does_not_speak_tls_is_told_what_it_speaks() -> None:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with serving(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")) as address:
        assert probe(address, PATIENCE_S, lambda: client) == Answer(Kind.OTHER, "SSH-2.0-OpenSSH_9.2")


def test_all_are_asked_at_once_up_to_a_limit_and_answer_in_their_order() -> None:
    together = threading.Barrier(MOST_AT_ONCE)

    def ask(number: int) -> int:
        if number < MOST_AT_ONCE:
            together.wait(PATIENCE_S)
        return -number

    numbers = [*range(MOST_AT_ONCE), *range(100, 110)]
    assert all_at_once(ask, numbers) == [-number for number in numbers]
    assert all_at_once(ask, []) == []
    with pytest.raises(ZeroDivisionError):
        all_at_once(lambda number: 1 // number, [1, 0, 2])
