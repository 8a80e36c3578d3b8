"""What docs/troubleshooting.md quotes is what the broker says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.apis.api import Later
from pykafka_broker.network.unanswered import Knowledge
from pykafka_broker.testing.processes import PykafkaBroker, environment, free_port
from tests.cli.conftest import run_command
from tests.support.pages import REPOSITORY
from tests.support.serving import API_VERSIONS, Doors, Served, produce_of

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()


@pytest.fixture(scope="module")
def broker() -> Iterator[PykafkaBroker]:
    with PykafkaBroker() as running:
        yield running


def refused(folder: Path, *arguments: str) -> str:
    """What a start says that must fail."""
    done = subprocess.run(
        [sys.executable, "-m", "pykafka_broker", "start", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return done.stdout.splitlines()[-1]


def is_quoted(piece: str, said: str) -> None:
    assert piece in said
    assert f"`{piece}`" in PAGE or f"```text\n{piece}\n```" in PAGE


def test_why_a_start_is_refused_is_quoted(broker: PykafkaBroker, tmp_path: Path) -> None:
    data = str(broker.data_dir)
    free = ("--listen", f"127.0.0.1:{free_port()}")
    for piece, arguments in {
        "Address already in use": ("--listen", broker.address),
        "Cannot assign requested address": ("--listen", "192.0.2.1:9092"),
        "Failed to acquire lock on file .lock": ("-d", data, *free),
        "Missing required configuration": ("--config", os.devnull),
        "does not support it, and ignoring it would be unsafe": (
            "-o",
            "create.topic.policy.class.name=x",
            *free,
        ),
    }.items():
        is_quoted(piece, refused(tmp_path, *arguments))


def test_why_a_folder_is_refused_is_quoted(tmp_path: Path) -> None:
    assert run_command("format", "-d", str(tmp_path / "data")).status == 0
    free = ("-d", "data", "--listen", f"127.0.0.1:{free_port()}")
    other = ("--cluster-id", "4L6g3nShT-eMCtK--X86sw")
    is_quoted("belongs to cluster", refused(tmp_path, *free, *other))
    is_quoted("belongs to node", refused(tmp_path, *free, "-o", "node.id=2"))
    is_quoted("No `meta.properties` found", refused(tmp_path, *free[2:], "-o", "log.dirs=data,unmounted"))


def test_what_the_log_says_is_quoted(tmp_path: Path) -> None:
    with PykafkaBroker({"retention.ms": "1"}, tmp_path) as broker:
        with socket.create_connection(("127.0.0.1", broker.port)) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert browser.recv(1) == b""
        log = broker.log_file.read_text()
    is_quoted("Invalid receive (size = 1195725856 larger than 104857600); the peer seems to speak HTTP", log)
    is_quoted("These configuration keys are unknown: retention.ms (did you mean log.retention.ms?)", log)


async def test_the_line_about_a_request_that_waits_is_quoted(caplog: pytest.LogCaptureFixture) -> None:
    doors, orders_id = Doors(), bytes(15) + b"\7"
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.shared.knowledge = Knowledge(topic_name={orders_id: "orders"}.get)
    served.send(*[API_VERSIONS] * 6)
    request = produce_of(b"x")
    request.timeout_ms = 30_000
    request.topic_data[0].topic_id = orders_id
    served.transport.feed(served.peer.request(request, version=13, client_id="shop"))
    for _ in range(40):
        await served.clock.pass_time(1_000)
        served.connection.check(served.clock.monotonic_ms())
    [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    is_quoted(said, said)
