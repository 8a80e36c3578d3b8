"""The driver programs: how each is built, into `.cache/drivers`, on first use and when its sources change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from interop.clients.driven import DrivenClient, ToolchainMissingError
from pykafka_broker.testing.cache import CACHE

HERE = Path(__file__).parent
BUILT = CACHE / "drivers"


def tool(name: str, hint: str) -> str:
    found = shutil.which(name)
    if not found:
        raise ToolchainMissingError(f"no {name} on the path ({hint})")
    return found


def run(command: Sequence[str], folder: Path, **more_environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **more_environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolchainMissingError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"[-4000:])


def built(language: str, build: Callable[[Path], None]) -> Path:
    """The folder of a copy of `interop/clients/<language>`, in which `build` has been run for these sources.

    The folder is replaced as a whole: a process that runs the former build keeps it until it ends.
    """
    sources = sorted(path for path in (HERE / language).rglob("*") if path.is_file())
    fingerprint = hashlib.sha256()
    for path in sources:
        fingerprint.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes())
    folder = BUILT / f"{language}-{fingerprint.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    unfinished = folder.with_name(f"{folder.name}.unfinished-{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(HERE / language, unfinished)
    try:
        build(unfinished)
        if not folder.is_dir():
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


class OldKafkaPython(DrivenClient):
    name = "kafka-python-2.0"

    @classmethod
    def command(cls) -> list[str]:
        if sys.version_info >= (3, 12):
            raise ToolchainMissingError("kafka-python 2.0.2 runs on Python up to 3.11")
        folder = built("old_kafka_python", cls.install)
        return [sys.executable, str(folder / "driver.py")]

    @staticmethod
    def install(folder: Path) -> None:
        """Beside the driver, where it is found before today's kafka-python."""
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
        run([*pip, "--target", str(folder), "-r", "requirements.txt"], folder)


class NodeClient(DrivenClient):
    program: str

    @classmethod
    def command(cls) -> list[str]:
        npm = tool("npm", "Debian: apt-get install npm")
        folder = built("node", lambda folder: run([npm, "ci", "--no-audit", "--no-fund"], folder))
        # Debian's node is too old for @platformatic/kafka: npm brings a newer one.
        return [str(folder / "node_modules/node/bin/node"), str(folder / cls.program)]


class Kafkajs(NodeClient):
    name, program = "kafkajs", "kafkajs.mjs"


class GoClient(DrivenClient):
    @classmethod
    def command(cls) -> list[str]:
        go = tool("go", "https://go.dev/dl")
        # Its modules go into the cache as well, so that nothing is left in the home folder.
        modules = {"GOMODCACHE": str(CACHE / "go"), "GOFLAGS": "-modcacherw"}
        folder = built("go", lambda folder: run([go, "build", "-o", "bin/", "./..."], folder, **modules))
        return [str(folder / "bin" / cls.name)]


class FranzGo(GoClient):
    name = "franz-go"


class KafkaGo(GoClient):
    name = "kafka-go"


class Platformatic(NodeClient):
    name, program = "platformatic", "platformatic.mjs"


class RustRdkafka(DrivenClient):
    name = "rust-rdkafka"

    @classmethod
    def command(cls) -> list[str]:
        cargo = tool(
            "cargo",
            "Debian: apt-get install cargo cmake libcurl4-openssl-dev libssl-dev, or https://rustup.rs",
        )
        # librdkafka is compiled once, not again for each change of the driver.
        target = CACHE / "rust"

        def build(folder: Path) -> None:
            run([cargo, "build", "-q", "--release", "--locked"], folder, CARGO_TARGET_DIR=str(target))
            shutil.copy2(target / "release" / cls.name, folder)

        return [str(built("rust", build) / cls.name)]
