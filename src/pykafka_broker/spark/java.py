"""The Java that Spark would start, and whether it can."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from pykafka_broker.spark.errors import Fault
from pykafka_broker.spark.releases import Line
from pykafka_broker.system.named_tuple import NamedTuple

#: Spark starts its JVM with this module, which a trimmed runtime does not have.
VECTOR_MODULE = "jdk.incubator.vector"
#: The first line of Spark that starts its JVM with that module.
_VECTOR_SINCE = "4.0"
TIMEOUT_S = 60.0
#: `1.8.0_392` is Java 8; `17.0.9`, `21`, `25-ea` begin with their number.
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class Java(NamedTuple):
    """A Java that was found."""

    path: str
    #: 8, 11, 17, ...; None: it does not start.
    version: int | None
    modules: frozenset[str] = frozenset()
    #: The output of a Java that tells no version.
    complaint: str = ""


def find_java(environ: Mapping[str, str] = os.environ) -> str | None:
    """The `java` that Spark's scripts start: that of JAVA_HOME, else the one on the path."""
    if home := environ.get("JAVA_HOME"):
        return os.path.join(home, "bin", "java")
    return shutil.which("java", path=environ.get("PATH"))


def look(environ: Mapping[str, str] = os.environ) -> Java | None:
    """The Java that Spark would start; None if there is none."""
    path = find_java(environ)
    if path is None:
        return None
    try:
        told = _output(path, "-version")
        match = _VERSION.search(told)
        if match is None:
            return Java(path, None, complaint=told.strip())
        version = int(match[1])
        # Java 8 has no modules, and does not know the option.
        modules = _output(path, "--list-modules").split() if version > 8 else []
    except (OSError, subprocess.SubprocessError) as error:
        return Java(path, None, complaint=str(error))
    return Java(path, version, frozenset(module.partition("@")[0] for module in modules))


def _output(path: str, option: str) -> str:
    done = subprocess.run([path, option], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.stderr + done.stdout


def faults(java: Java | None, line: Line) -> list[Fault]:
    """The faults of this Java for this line of Spark."""
    best = max(version for version in line.java if version <= 17)
    install = (
        f"Install Java {best} (Debian: apt-get install openjdk-{best}-jre-headless) and, if several are "
        "installed, let JAVA_HOME name its folder."
    )
    if java is None:
        return [Fault("There is no Java: neither is JAVA_HOME set, nor is `java` on the path.", install)]
    if java.version is None:
        return [Fault(f"{java.path} does not start: {java.complaint or 'it says nothing'}.", install)]
    tested = ", ".join(map(str, line.java))
    if java.version < line.java[0]:
        return [
            Fault(
                f"{java.path} is Java {java.version}; Spark {line.name} needs {line.java[0]} or newer, and "
                "ends with UnsupportedClassVersionError.",
                install,
            )
        ]
    if line.name >= _VECTOR_SINCE and VECTOR_MODULE not in java.modules:
        return [
            Fault(
                f"{java.path} is a trimmed Java without the module {VECTOR_MODULE}, with which "
                f"Spark {line.name} starts its JVM.",
                install,
            )
        ]
    if java.version not in line.java:
        return [
            Fault(
                f"{java.path} is Java {java.version}; Spark {line.name} is tested with {tested}.",
                install,
                is_warning=True,
            )
        ]
    return []
