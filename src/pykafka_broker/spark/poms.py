"""POMs: the dependencies of a jar, and theirs in turn. Pure; the caller reads the files.

As much of Maven as the connector and the tables of Spark need: dependencies of the scopes compile and runtime
with their versions, exclusions, the nearest of two versions. Not done: versions that a parent POM or a bill
of materials decides, ranges, profiles, classifiers.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Callable, Collection, Iterable

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.releases import Coordinates
from pykafka_broker.system.named_tuple import NamedTuple

_NAMESPACE = "{*}"
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
#: The scopes whose jars are there when a program runs.
SCOPES = ("compile", "runtime")
#: More jars than this are not the closure of a connector.
MOST_JARS = 200

#: A group and an artifact, of which either may be `*`.
Exclusion = tuple[str, str]


class Dependency(NamedTuple):
    """A dependency that a POM declares."""

    coordinates: Coordinates
    exclusions: frozenset[Exclusion] = frozenset()


def dependencies(pom: str) -> list[Dependency]:
    """The dependencies that are needed when a program runs.

    Raises:
        SparkError: the text is no POM.
    """
    try:
        root = ET.fromstring(pom)
    except ET.ParseError as error:
        raise SparkError(f"What should be a POM is none: {error}.") from None
    properties = _properties(root)
    found = []
    for entry in root.findall(f"{_NAMESPACE}dependencies/{_NAMESPACE}dependency"):

        def text(name: str, default: str = "", entry: ET.Element = entry) -> str:
            return _resolved((entry.findtext(f"{_NAMESPACE}{name}") or default).strip(), properties)

        if text("scope", "compile") not in SCOPES or text("optional") == "true":
            continue
        if text("type", "jar") != "jar":
            continue
        excluded = frozenset(
            (
                (exclusion.findtext(f"{_NAMESPACE}groupId") or "*").strip(),
                (exclusion.findtext(f"{_NAMESPACE}artifactId") or "*").strip(),
            )
            for exclusion in entry.findall(f"{_NAMESPACE}exclusions/{_NAMESPACE}exclusion")
        )
        coordinates = Coordinates(text("groupId"), text("artifactId"), text("version"))
        found.append(Dependency(coordinates, excluded))
    return found


def _properties(root: ET.Element) -> dict[str, str]:
    properties = {
        child.tag.rpartition("}")[2]: (child.text or "").strip()
        for child in root.findall(f"{_NAMESPACE}properties/*")
    }
    for name in ("groupId", "version"):
        own = root.findtext(f"{_NAMESPACE}{name}") or root.findtext(f"{_NAMESPACE}parent/{_NAMESPACE}{name}")
        properties[f"project.{name}"] = (own or "").strip()
    return properties


def _resolved(text: str, properties: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: properties.get(match[1], match[0]), text)


def is_among(artifact: str, jars: Iterable[str]) -> bool:
    """Whether one of these files is a jar of the artifact, in any version."""
    return any(version_of(artifact, jar) is not None for jar in jars)


def version_of(artifact: str, jar: str) -> str | None:
    """The version in the name of an artifact's jar; None if the file is no jar of the artifact."""
    match = re.fullmatch(rf"{re.escape(artifact)}-(\d[\w.+-]*)\.jar", jar)
    return match[1] if match else None


def closure(
    roots: Iterable[Coordinates], provided: Collection[str], read_pom: Callable[[Coordinates], str]
) -> list[Coordinates]:
    """The roots and all their dependencies, without those among the jars `provided`.

    Raises:
        SparkError: a version cannot be told, or the dependencies have no end.
    """
    chosen: dict[tuple[str, str], Coordinates] = {}
    waiting = deque(Dependency(root) for root in roots)
    for root in waiting:
        chosen[root.coordinates[:2]] = root.coordinates
    while waiting:
        asked = waiting.popleft()
        for needed in dependencies(read_pom(asked.coordinates)):
            group, artifact, version = needed.coordinates
            if (group, artifact) in chosen or is_among(artifact, provided):
                continue
            if _is_excluded(group, artifact, asked.exclusions):
                continue
            if not version or _REFERENCE.search(version):
                raise SparkError(
                    f"The POM of {asked.coordinates} does not say which version of {group}:{artifact} it "
                    "needs."
                )
            chosen[group, artifact] = needed.coordinates
            if len(chosen) > MOST_JARS:
                raise SparkError(f"More than {MOST_JARS} jars are needed; that is no connector.")
            waiting.append(needed._replace(exclusions=needed.exclusions | asked.exclusions))
    return list(chosen.values())


def _is_excluded(group: str, artifact: str, exclusions: frozenset[Exclusion]) -> bool:
    return any(g in ("*", group) and a in ("*", artifact) for g, a in exclusions)
