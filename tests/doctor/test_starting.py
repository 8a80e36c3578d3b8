"""The broker of this machine that is to serve an address, by its command line, environment and file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.doctor.reach import StartingBroker
from pykafka_broker.doctor.starting import to_serve
from pykafka_broker.system.processes import StartCommand

NODE = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:19093,2@127.0.0.1:29093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://:19092,CONTROLLER://127.0.0.1:19093
"""


def running(*arguments: str, directory: str = "", **environ: str) -> StartCommand:
    return StartCommand(0, list(arguments), environ, directory)


def test_it_is_known_by_its_file_wherever_it_was_started(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(NODE)
    process = running("--config", "server.properties", "--json", directory=str(tmp_path))
    found = to_serve(("127.0.0.1", 19092), [running("--config", "missing"), process])
    assert found == StartingBroker("another process", "127.0.0.1:19093")
    assert to_serve(("127.0.0.1", 19093), [process]) is None, "no client is served there"


@pytest.mark.parametrize(
    "process",
    [
        running("--listen", "localhost:19092"),
        running("-o", "listeners=PLAINTEXT://127.0.0.1:19092", "-o", "node.id=3"),
        running(KAFKA_LISTENERS="PLAINTEXT://127.0.0.1:19092"),
    ],
    ids=["an option", "an override", "a variable"],
)
def test_it_is_known_by_options_and_variables(process: StartCommand) -> None:
    assert to_serve(("127.0.0.1", 19092), [process]) == StartingBroker("another process", "")
    assert to_serve(("127.0.0.1", 9092), [process]) is None
