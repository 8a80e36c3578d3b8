"""`health`: the exit status tells whether a broker answers."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.conftest import Run, run_command
from tests.cli.test_main import unused_address


def test_a_broker_that_answers_is_healthy(run: Run, broker: str) -> None:
    result = run("health", broker)
    assert re.fullmatch(rf"healthy: broker 1 of cluster [\w-]{{22}} at {broker}\n", result.out)
    assert result.status == 0


def test_a_broker_that_is_away_is_not(run: Run) -> None:
    assert run("health", unused_address()).status == 1


def test_in_a_container_the_listener_tells_the_port(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = broker.rpartition(":")[2]
    monkeypatch.setenv("KAFKA_LISTENERS", f"CONTROLLER://0.0.0.0:1,PLAINTEXT://:{port}")
    assert run_command("health").status == 0


def test_a_bad_address_is_wrong_usage(run: Run) -> None:
    assert run("health", "localhost").status == 2


def test_a_health_check_imports_neither_the_broker_nor_its_configuration() -> None:
    script = (
        "import sys\nfrom pykafka_broker.cli import main\n"
        f"try: main(['health', '{unused_address()}'])\nexcept SystemExit: pass\n"
        "heavy = ('asyncio', 'logging', 'dataclasses', 'pykafka_broker.config', 'pykafka_broker.server',"
        " 'pykafka_broker.log')\n"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, [])
