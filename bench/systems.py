"""The brokers under comparison, each a process with the same properties."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.jars import ApacheUnavailableError, libs
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker

#: Said to every broker that takes properties; kfake gets the number of partitions as a flag.
PROPERTIES = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
}

GO_SOURCES = Path(__file__).parent


class UnavailableError(Exception):
    """This machine lacks what the broker needs; the message says what."""


def go_program(name: str) -> Path:
    """A Go program of bench/, built into the cache."""
    go = shutil.which("go")
    if not go:
        raise UnavailableError("no Go toolchain on the path")
    program = CACHE / "bin" / name
    # Modules and objects stay in the cache as well, and can be deleted like the rest of it.
    environment = {**os.environ, "GOPATH": str(CACHE / "go"), "GOCACHE": str(CACHE / "go-build")}
    built = subprocess.run(
        [go, "build", "-modcacherw", "-o", str(program), "."],
        cwd=GO_SOURCES / name,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        raise UnavailableError(f"go build of bench/{name} failed: {built.stderr.strip()}")
    return program


class Kfake(BrokerProcess):
    """franz-go's test broker: one node, data on disk, few features, very little work per request."""

    name = "kfake"

    def __init__(self, properties: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self.program = go_program("kfake")
        super().__init__(properties, folder)

    def command(self) -> list[str]:
        partitions = self.properties.get("num.partitions", "1")
        return [
            str(self.program),
            *("-port", str(self.port), "-data-dir", str(self.data_dir), "-partitions", partitions),
        ]


def ours() -> BrokerProcess:
    return PykafkaBroker(PROPERTIES)


def apache() -> BrokerProcess:
    try:
        libs()
    except ApacheUnavailableError as missing:
        raise UnavailableError(str(missing)) from missing
    broker = ApacheBroker(PROPERTIES)
    broker.jvm_options = ()
    return broker


def kfake() -> BrokerProcess:
    return Kfake(PROPERTIES)


#: In the order in which they run.
SYSTEMS: dict[str, Callable[[], BrokerProcess]] = {"apache": apache, "kfake": kfake, "ours": ours}


def describe_machine() -> dict[str, str]:
    cpu = "unknown CPU"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        cpu = f"{len(models)} x {models[0]}" if models else cpu
    return {"cpu": cpu, "python": sys.version.split()[0], "platform": sys.platform}
