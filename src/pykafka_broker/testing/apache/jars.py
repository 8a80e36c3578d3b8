"""The jars of Apache Kafka, fetched with Maven once, into `kafka-4.3.1/libs` of the cache (`cache.py`).

`pom.xml` names them. Maven gets a repository of its own there, so that nothing is left in the home folder.
Needs Java 17 and Maven.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pykafka_broker.testing.cache import CACHE

VERSION = "4.3.1"
POM = Path(__file__).with_name("pom.xml")
CLIENTS_POM = POM.with_name("clients.pom.xml")


class ApacheUnavailableError(Exception):
    """Java, Maven or the jars are not available on this machine; the message says which."""


def java() -> str:
    """The `java` of `JAVA_HOME`, or that on the path. Raises ApacheUnavailableError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if not found:
        raise ApacheUnavailableError("no java on the path (Debian: apt-get install openjdk-17-jre-headless)")
    return found


def libs(version: str = VERSION) -> Path:
    """The folder of Kafka's jars, fetched on first use; of a release other than `VERSION`, only those of its
    clients and tools. Raises ApacheUnavailableError.
    """
    return fetched("libs", POM if version == VERSION else CLIENTS_POM, version)


def class_archive() -> Path:
    """The path of the archive of the classes of these jars (`class_archive.py`); each Java has its own."""
    runtime = Path(java()).resolve()
    marks = f"{runtime} {runtime.stat().st_mtime_ns} {libs().resolve()}"
    return libs().with_name(f"classes-{zlib.crc32(marks.encode()):08x}.jsa")


def fetched(name: str, pom: Path, version: str, *options: str) -> Path:
    """The folder of the jars that `pom` names, fetched on first use as `name` of that version; `options` are
    Maven's.
    """
    folder = CACHE / f"kafka-{version}" / name
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with alone(CACHE / "maven.lock"):
            if not folder.is_dir():
                fetch(folder, pom, version, *options)
    return folder


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`: several test processes want the same jars at the same time."""
    import fcntl  # not on Windows, where the rest of this module is imported too

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(folder: Path, pom: Path, version: str, *options: str) -> None:
    """Let Maven put the jars into `folder`, which is there only once all of them are."""
    maven = shutil.which("mvn")
    if not maven:
        raise ApacheUnavailableError(
            "no mvn on the path to fetch Apache Kafka's jars (Debian: apt-get install maven)"
        )
    java()
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    done = subprocess.run(
        [
            *(maven, "-q", "-B", "-f", str(pom), f"-Dkafka.version={version}", *options),
            f"-Dmaven.repo.local={CACHE / 'm2'}",
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ApacheUnavailableError(
            f"Maven could not fetch Apache Kafka's jars:\n{done.stdout}{done.stderr}"
        )
    unfinished.rename(folder)
