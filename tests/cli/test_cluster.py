"""The commands' client, against brokers that are old, slow, or not brokers at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pykafka_broker.cli import progress
from pykafka_broker.client.blocking import Client, FrameSocket
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run
from tests.support.scripted_broker import Serve, scripted_brokers


@pytest.fixture
def serve() -> Iterator[Serve]:
    with scripted_brokers() as serve:
        yield serve


@pytest.mark.parametrize("kind", [BrokenPipeError, ConnectionResetError])
def test_a_broker_that_breaks_the_connection_off_is_not_taken_for_the_output(
    run: Run, monkeypatch: pytest.MonkeyPatch, broker: str, kind: type[OSError]
) -> None:
    """A broken pipe ended the command with status 1 and without a word."""

    def broken_off(_: FrameSocket) -> bytes:
        raise kind

    monkeypatch.setattr(FrameSocket, "receive", broken_off)
    told = f"Error: {broker} closed the connection; `pykafka-broker doctor {broker}` may tell why\n"
    assert run("topics", "list") == (1, "", told)


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


def test_a_connection_on_which_an_exchange_was_cut_short_is_not_used_again(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that is still to come was taken for that of the next request."""
    with Client(broker) as client:
        first = client.connection()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(FrameSocket, "receive", interrupted)
            client.metadata([])
        assert len(client.metadata([]).brokers) == 1
        assert (first.is_closed, client.connection().is_closed) == (True, False)


def interrupted(_: FrameSocket) -> bytes:
    raise KeyboardInterrupt


def test_the_next_bootstrap_server_is_tried_when_one_is_away(broker: str) -> None:
    with Client(f"127.0.0.1:{free_port()},{broker}") as client:
        assert len(client.metadata([]).brokers) == 1


def test_an_unknown_broker_cannot_be_asked(broker: str) -> None:
    with Client(broker) as client, pytest.raises(KafkaError, match="Broker 7 is not available"):
        client.send(MetadataRequest(topics=None), node_id=7)


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
