"""What docs/operations.md says of backups, log files, the unit and the wheel is so."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from pykafka_broker import __version__
from pykafka_broker.cli.start import start
from pykafka_broker.config.sources import load_config
from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.pages import REPOSITORY

PACKAGING = REPOSITORY / "packaging"
UNIT = PACKAGING / "pykafka-broker.service"
TOPIC = "orders"
#: Enough to keep the producer busy while the broker is stopped in the midst of it.
RECORDS = 20_000


def values(broker: PykafkaBroker) -> list[bytes]:
    """All records of the topic, in their order."""
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "check", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            break
        value = message.value()
        assert value is not None
        found.append(value)
    consumer.close()
    return found


def committed(broker: PykafkaBroker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
    offset = consumer.committed([TopicPartition(TOPIC, 0)], timeout=60)[0].offset
    consumer.close()
    return int(offset)


def commit(broker: PykafkaBroker, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_copy_of_a_frozen_broker_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []

    def on_delivery(error: object, message: Message) -> None:
        value = message.value()
        assert error is None and value is not None
        acknowledged.append(value)

    with PykafkaBroker(folder=tmp_path / "first") as broker:
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, "batch.num.messages": 10})
        producer.produce(TOPIC, b"0", partition=0, on_delivery=on_delivery)
        assert producer.flush(60) == 0
        commit(broker, 7)
        for number in range(1, RECORDS):
            producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=on_delivery)
        while len(acknowledged) < 100:
            producer.poll(0.01)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            producer.poll(0)
            by_then = list(acknowledged)
            shutil.copytree(broker.data_dir, tmp_path / "second" / "data")
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert producer.flush(120) == 0
        assert values(broker) == [b"%d" % number for number in range(RECORDS)]

    assert len(by_then) < RECORDS
    with PykafkaBroker(folder=tmp_path / "second") as restored:
        found = values(restored)
        assert found[: len(by_then)] == by_then
        assert found == [b"%d" % number for number in range(len(found))]
        assert committed(restored) == 7


def test_a_log_file_that_is_cut_is_written_on_from_its_beginning(tmp_path: Path) -> None:
    with PykafkaBroker(folder=tmp_path) as broker:
        assert "Kafka Server started" in broker.log_file.read_text()
        os.truncate(broker.log_file, 0)
    text = broker.log_file.read_text()
    assert text.startswith("[")
    assert "Kafka Server started" not in text
    assert text.endswith("shut down completed (kafka.server.BrokerServer)\n")


def settings(name: str) -> list[str]:
    return [
        line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.partition("=")[0] == name
    ]


def test_the_unit_starts_the_broker_with_options_that_there_are() -> None:
    (command,) = settings("ExecStart")
    program, subcommand, *options = shlex.split(command)
    assert (program, subcommand) == ("/opt/pykafka-broker/bin/pykafka-broker", "start")
    assert start.make_context("start", options).params["file"] == "/etc/pykafka-broker/server.properties"


def test_the_file_beside_the_unit_is_a_whole_configuration_of_known_keys() -> None:
    config = load_config(file=str(PACKAGING / "server.properties"))
    assert (config.unknown, config.unheeded) == ([], [])
    assert config.log_dirs == (f"/var/lib/{settings('StateDirectory')[0]}/data",)


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None and "CI" not in os.environ, reason="there is no systemd here"
)
def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pykafka-broker")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/pykafka-broker/bin/pykafka-broker", str(program)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


def test_a_wheel_has_all_that_the_package_needs(tmp_path: Path) -> None:
    # Built from a copy: the builder may leave files beside the sources.
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy2
        copy(REPOSITORY / name, tmp_path / name)
    build = [
        *(sys.executable, "-m", "pip", "wheel", "-q"),
        *("--no-deps", "--no-build-isolation", "-w", "dist", "."),
    ]
    subprocess.run(build, cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name == f"pykafka_broker-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    package = REPOSITORY / "src" / "pykafka_broker"
    files = {path.relative_to(package) for path in package.rglob("*") if path.is_file()}
    sources = {path for path in files if path.suffix != ".pyc"}
    unpacked = tmp_path / "installed" / "pykafka_broker"
    assert {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()} == sources
    run = subprocess.run(
        [sys.executable, "-c", "import pykafka_broker; print(pykafka_broker.__file__)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(run.stdout.strip()).is_relative_to(tmp_path / "installed")
