"""Whether jars fit together: the connector, its dependencies, and the Spark that loads them. Pure.

Jars are known by their file names, as Maven gives them. Jars that do not fit show in Spark as
`Failed to find data source: kafka`, as a NoClassDefFoundError or a NoSuchMethodError, often only when the
first batch runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pykafka_broker.spark.errors import Fault
from pykafka_broker.spark.poms import version_of
from pykafka_broker.spark.releases import CONNECTOR, DSTREAMS_CONNECTOR, TOKEN_PROVIDER
from pykafka_broker.system.named_tuple import NamedTuple

#: The jars that the connector needs and that are not among Spark's own, with their purpose.
NEEDED = {
    "kafka-clients": "Kafka's Java client",
    "commons-pool2": "the pool of its consumers",
}
_SCALA = re.compile(r"_(2\.1\d)-\d")


#: The remedy for most faults.
AGAIN = "Fetch those that fit into an empty folder:\n  pykafka-broker spark jars --dest DIR"


class Wanted(NamedTuple):
    """The Spark that jars have to fit."""

    spark: str
    scala: str


def faults(jars: Sequence[str], wanted: Wanted) -> list[Fault]:
    """The faults of the jars on a classpath besides Spark's own.

    Args:
        jars: The names of all files.
        wanted: The Spark that loads them.
    """
    return [
        *_about_connector(jars, wanted),
        *_about_scala(jars, wanted),
        *_about_needed(jars, wanted),
    ]


def _about_connector(jars: Sequence[str], wanted: Wanted) -> list[Fault]:
    if not any(jar.startswith(f"{CONNECTOR}_") for jar in jars):
        name = f"{CONNECTOR}_{wanted.scala}-{wanted.spark}.jar"
        other = ""
        if any(jar.startswith(DSTREAMS_CONNECTOR) for jar in jars):
            other = f" {DSTREAMS_CONNECTOR} is the one of DStreams."
        return [Fault(f'The connector behind format("kafka") is not there, {name}.{other}', AGAIN)]
    versions = _versions(f"{CONNECTOR}_{wanted.scala}", jars)
    if len(versions) > 1:
        return [Fault(f"The connector is there in {len(versions)} versions ({', '.join(versions)}).", AGAIN)]
    if not versions or versions[0] == wanted.spark:
        return []
    found = f"The connector is of Spark {versions[0]}, and Spark is {wanted.spark}"
    if versions[0].split(".")[:2] == wanted.spark.split(".")[:2]:
        return [Fault(f"{found}: of the same line, so it mostly works.", AGAIN, is_warning=True)]
    return [Fault(f"{found}: it calls what this Spark does not have.", AGAIN)]


def _about_scala(jars: Sequence[str], wanted: Wanted) -> list[Fault]:
    others = sorted(jar for jar in jars if (match := _SCALA.search(jar)) and match[1] != wanted.scala)
    if not others:
        return []
    names = ", ".join(others[:3])
    return [
        Fault(
            f"For another Scala than Spark's {wanted.scala} (NoClassDefFoundError: scala/...): {names}.",
            AGAIN,
        )
    ]


def _about_needed(jars: Sequence[str], wanted: Wanted) -> list[Fault]:
    found = []
    for artifact, what in {f"{TOKEN_PROVIDER}_{wanted.scala}": "its settings", **NEEDED}.items():
        versions = _versions(artifact, jars)
        if not versions and _versions(f"{CONNECTOR}_{wanted.scala}", jars):
            message = f"The connector lacks {artifact}, {what}: NoClassDefFoundError at the first read."
            found.append(Fault(message, AGAIN))
        if len(versions) > 1:
            message = f"{artifact} is there in several versions ({', '.join(versions)}): chance picks one."
            found.append(Fault(message, f"Leave one of them. {AGAIN}"))
    return found


def _versions(artifact: str, jars: Sequence[str]) -> list[str]:
    return sorted({version for jar in jars if (version := version_of(artifact, jar)) is not None})
