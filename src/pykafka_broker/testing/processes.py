"""Brokers as processes: start one, stop it, kill it, start it again on the same data.

    with PykafkaBroker({"num.partitions": "3"}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
        ...
        broker.restart()

Works with any client and any test, as the broker has an interpreter of its own; `apache/broker.py` adds
Apache Kafka. A broker keeps its address for its whole life, so a client survives a restart.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pykafka_broker.client.blocking import connect
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.local_cluster.free_ports import free_port as free_port

if TYPE_CHECKING:
    from pykafka_broker.client.blocking import Tls

#: ApiVersions v0 with correlation id 1 and no client id: every broker since 0.10 answers it.
PING = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def environment() -> dict[str, str]:
    """The environment of a broker's process: that of this one, without PYTHONDONTWRITEBYTECODE, with which
    Python would compile the broker at each start, and without what configures another broker: only its
    properties count.
    """
    return {name: value for name, value in os.environ.items() if not _is_left_out(name)}


def _is_left_out(name: str) -> bool:
    is_of_a_broker = name.startswith("KAFKA_") and not name.startswith("KAFKA_LOG4J_")
    return is_of_a_broker or name in ("CLUSTER_ID", "PYTHONDONTWRITEBYTECODE")


class BrokerError(Exception):
    """The broker did not start, or ended by itself; the message holds the end of its log."""


def answers(port: int, timeout_s: float = 5.0, host: str = "127.0.0.1", tls: Tls | None = None) -> bool:
    """Whether a broker on this port answers a request now."""
    try:
        with connect(Address(host, port), timeout_s, tls) as connection:
            connection.sendall(PING)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


class BrokerProcess(ABC):
    """One broker on this machine, started by `with` or `start`.

    Its `properties` are the keys of server.properties. `folder` holds its data, log and properties; without
    one it gets a temporary folder, which `close` deletes.
    """

    name: str
    #: Where it listens.
    host = "127.0.0.1"
    #: TLS for the request that checks whether it serves; None if it listens without TLS.
    tls: Tls | None = None
    start_timeout_s = 180.0
    stop_timeout_s = 120.0

    def __init__(self, properties: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self.properties = dict(properties or {})
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix=f"{self.name}-")
        self.folder = Path(folder or self._temporary.name)  # type: ignore[union-attr]
        self.data_dir = self.folder / "data"
        self.log_file = self.folder / "broker.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command line to run; called at each start."""

    def prepare(self) -> None:
        """Prepare its folder before a start: for example, format the data folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def log_tail(self, lines: int = 30) -> str:
        if not self.log_file.exists():
            return ""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def start(self) -> float:
        """Start and wait for the first answered request; return the seconds that this took."""
        assert self.process is None, "the broker is running already"
        self.prepare()
        command = self.command()
        with self.log_file.open("ab") as log:
            started = time.perf_counter()
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment()
            )
        try:
            self._wait_for_answer(started)
        except BaseException:
            self.kill()
            raise
        return time.perf_counter() - started

    def _wait_for_answer(self, started: float) -> None:
        assert self.process is not None
        while not answers(self.port, host=self.host, tls=self.tls):
            if self.process.poll() is not None:
                raise BrokerError(f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}")
            if time.perf_counter() - started > self.start_timeout_s:
                raise BrokerError(f"{self.name} did not answer on {self.address}:\n{self.log_tail()}")
            # Precise to a hundredth of the time, without a busy loop.
            time.sleep(max(0.001, (time.perf_counter() - started) / 100))

    def stop(self) -> float:
        """Ask it to stop (SIGTERM) and wait; return the seconds that this took."""
        assert self.process is not None, "the broker is not running"
        started = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"{self.name} did not stop on SIGTERM:\n{self.log_tail()}") from None
        self.process = None
        return time.perf_counter() - started

    def kill(self) -> None:
        """Kill -9, as a crash of the process would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(BrokerError):
                self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


#: Kafka's defaults, where `start` without a file has others: tests compare with Apache Kafka.
KAFKA_DEFAULTS = {"group.initial.rebalance.delay.ms": "3000"}


class PykafkaBroker(BrokerProcess):
    """`pykafka-broker start`, run by the interpreter of the caller."""

    #: Its name in the results of comparisons.
    name = "ours"

    def command(self) -> list[str]:
        return [*self.start_command({**KAFKA_DEFAULTS, **self.properties}), "--listen", self.address]

    def start_command(self, properties: Mapping[str, str]) -> list[str]:
        """The command line of a start with these properties, without an address to listen on."""
        overrides = [flag for key, value in properties.items() for flag in ("--override", f"{key}={value}")]
        return [
            *(sys.executable, "-m", "pykafka_broker", "start", "--data-dir", str(self.data_dir)),
            *overrides,
        ]


class PykafkaNode(PykafkaBroker):
    """The same with a listener for controllers beside that for brokers, as in Apache Kafka's own
    server.properties.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        super().__init__(properties, folder)
        self.controller_port = free_port()

    @property
    def controller_address(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    def command(self) -> list[str]:
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://{self.controller_address}"
        return self.start_command({**KAFKA_DEFAULTS, "listeners": listeners, **self.properties})
