"""A Maven repository in a folder, with jars of a few bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from pykafka_broker.spark.releases import Coordinates, parse_coordinates

#: What the connector of Spark 4.0.0 needs, as its POM and theirs say.
CONNECTOR_4_0 = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0": [
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.0",
        "com.google.code.findbugs:jsr305:3.0.0",
        "org.apache.commons:commons-pool2:2.12.0",
    ],
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0": ["org.apache.kafka:kafka-clients:3.9.0"],
    "org.apache.kafka:kafka-clients:3.9.0": ["org.lz4:lz4-java:1.8.0"],
    "org.apache.commons:commons-pool2:2.12.0": [],
}

#: What the table format needs beside it.
DELTA_4_0: dict[str, list[str]] = {
    "io.delta:delta-spark_2.13:4.0.0": ["io.delta:delta-storage:4.0.0"],
    "io.delta:delta-storage:4.0.0": [],
}


def pom_of(needed: Sequence[str]) -> str:
    """A POM that asks for these coordinates."""
    entries = "".join(
        f"<dependency><groupId>{escape(c.group)}</groupId><artifactId>{escape(c.artifact)}</artifactId>"
        f"<version>{escape(c.version)}</version></dependency>"
        for c in map(parse_coordinates, needed)
    )
    return (
        f'<project xmlns="http://maven.apache.org/POM/4.0.0"><dependencies>{entries}</dependencies></project>'
    )


def content_of(coordinates: Coordinates) -> bytes:
    """What stands in for a jar."""
    return f"the jar {coordinates}".encode()


def make_repository(
    folder: Path,
    packages: Mapping[str, Sequence[str]],
    content_of: Callable[[Coordinates], bytes] = content_of,
) -> str:
    """The URL of a repository with these packages, each with what it needs."""
    for package, needed in packages.items():
        coordinates = parse_coordinates(package)
        for suffix, content in ((".pom", pom_of(needed).encode()), (".jar", content_of(coordinates))):
            path = folder / f"{coordinates.stem}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.with_name(f"{path.name}.sha1").write_text(hashlib.sha1(content).hexdigest())
    return folder.as_uri()
