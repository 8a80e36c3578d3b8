"""The console on a socket: the command, and the one that a broker serves."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pykafka_broker.broker.broker import Broker
from pykafka_broker.config import ConfigError
from pykafka_broker.config.sources import load_config
from pykafka_broker.console.beside import Beside, settings_of
from pykafka_broker.console.server import bound, server
from pykafka_broker.console.settings import Settings
from pykafka_broker.machine.history import Decision, Kind
from tests.cli.conftest import run_command
from tests.cli.secured import PLAIN_LOGIN


def page_at(address: str, path: str = "/") -> str:
    with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def title_at(address: str) -> str:
    [title] = re.findall("<h1>(.*?)</h1>", page_at(address))
    return str(title)


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_stop(broker: str) -> None:
    command = [sys.executable, "-m", "pykafka_broker", "console", "-b", broker, "-l", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        title = title_at(started["url"].removeprefix("http://").removesuffix("/"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (started["bootstrap"], title) == (broker, "Cluster")
    assert (process.returncode, out, err.strip()) == (130, "", "")


@pytest.mark.slow
def test_a_broker_serves_the_console_and_stops_it(tmp_path: Path) -> None:
    options = ["--listen", "127.0.0.1:0", "-o", "console.listeners=http://127.0.0.1:0", "--json"]
    command = [sys.executable, "-m", "pykafka_broker", "start", *options]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["node_id"] == 1
        line = next(line for line in process.stderr if "Console at" in line)
        [address] = re.findall(r"Console at ([\d.:]+)", line)
        title = title_at(address)
        process.terminate()
        _, err = process.communicate(timeout=120)
    assert (process.returncode, title) == (0, "Cluster"), err


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """The address of a console without a cluster."""
    taken = bound("127.0.0.1", 0)
    served = server(Settings("127.0.0.1:1"))
    thread = threading.Thread(target=served.run, args=([taken],))
    thread.start()
    try:
        yield taken.getsockname()
    finally:
        served.should_exit = True
        thread.join()


async def test_the_console_of_a_broker_tells_its_history(tmp_path: Path) -> None:
    """Without a metrics listener, which others need."""
    overrides = {"console.listeners": "http://127.0.0.1:0"}
    config = load_config(listen="127.0.0.1:0", data_dir=str(tmp_path), overrides=overrides)
    async with Broker(config) as broker:
        broker.node.foundation.history.tell(Decision(Kind.REQUEST, ("shop",), "The broker denied it."))
        async with Beside(config, broker.node) as console:
            [address] = console.addresses
            page = await asyncio.to_thread(page_at, address, "/explain?kind=request&name=shop")

    assert "The broker denied it." in page


def test_connections_that_say_nothing_do_not_take_all_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka_broker.console.server.MAX_CONNECTIONS", 1)
    with (
        serving() as address,
        closing(socket.create_connection(address)) as first,
        closing(socket.create_connection(address)) as one_too_many,
    ):
        assert one_too_many.recv(1) == b""
        first.sendall(b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.recv(15) == b"HTTP/1.1 200 OK"


def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka_broker.console.server.REQUEST_WITHIN_S", 0.0)
    with serving() as address, closing(socket.create_connection(address)) as silent:
        assert silent.recv(1) == b""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-l", "nowhere"], "is not HOST:PORT"),
        (["-b", "http://kafka:9092"], "is a URL"),
        (["--certificate", __file__], "go together"),
        (["-l", "192.0.2.1:9080"], "cannot listen"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], told: str) -> None:
    result = run_command("console", *words)

    assert result.status in (1, 2)
    assert told in result.err


def test_the_command_logs_at_the_levels_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LOG4J_ROOT_LOGLEVEL", "LOUD")

    result = run_command("console", "-l", "127.0.0.1:0")

    assert result.status == 1
    assert "'LOUD' is not a log level" in result.err


def test_a_console_has_no_user_of_its_own(tmp_path: Path) -> None:
    """Everybody would be that user."""
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_LOGIN} username="a" password="b";\n'
    )

    result = run_command("console", "--command-config", str(file))

    assert result.status == 2
    assert "visitors sign in" in result.err


def settings(**overrides: str) -> Settings:
    given = {"console.listeners": "http://127.0.0.1:9080", **overrides}
    config = load_config(overrides=[f"{key}={value}" for key, value in given.items()])
    return settings_of(config, {"PLAINTEXT": 1, "INSIDE": 2, "USERS": 3}.__getitem__)


def test_the_console_of_a_broker_asks_the_listener_that_asks_most() -> None:
    """Through the other one, which is for brokers, every visitor would be a stranger with their rights."""
    plain = settings()
    assert (plain.bootstrap, plain.write) == ("127.0.0.1:1", False)
    assert plain.allowed_hosts == {"127.0.0.1", "::1", "localhost"}
    with_users = settings(
        **{
            "listeners": "INSIDE://127.0.0.1:0,USERS://0.0.0.0:0",
            "advertised.listeners": "INSIDE://127.0.0.1:1,USERS://kafka:1",
            "listener.name.users.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_bob="bob-secret";',
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,USERS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "PLAIN",
            "console.listeners": "http://0.0.0.0:9080",
            "console.write": "true",
            "console.host.names": "kafka.internal",
        }
    )
    assert (with_users.bootstrap, with_users.write) == ("127.0.0.1:3", True)
    assert with_users.allowed_hosts == {"127.0.0.1", "::1", "localhost", "kafka.internal"}


def test_a_listener_of_the_console_is_a_url() -> None:
    with pytest.raises(ConfigError, match="write http://host:port"):
        settings(**{"console.listeners": "127.0.0.1:9080"})
