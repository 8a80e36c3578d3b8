"""The two load generators have the same output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench import load
from bench.systems import go_program
from pykafka_broker.testing.processes import PykafkaBroker


@pytest.mark.slow
@pytest.mark.parametrize("name", ["franz-go", "librdkafka"])
def test_a_producer_tells_the_p99_of_its_requests(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command: tuple[str, ...] = (sys.executable, "-m", "bench.librdkafka")
    if name == "franz-go":
        command = (str(go_program("load")),)
    monkeypatch.setattr(load, "generator", lambda: (name, command))
    with PykafkaBroker(folder=tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result(60)
        told = load.run("produce", broker.address, "orders", 20_000, size=100)
    assert told.keys() == {"records", "bytes", "seconds", "p99_ms"}
    assert (told["records"], told["bytes"]) == (20_000, 2_000_000)
    assert told["p99_ms"] > 0
