"""The jars of a session in a folder: fetched once, and given to Spark without Ivy.

With `spark.jars.packages` Spark asks Ivy anew for every session, which takes half a minute, and needs the
network. A folder takes neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pykafka_broker.spark.classpath import Wanted, faults
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import Installation
from pykafka_broker.spark.poms import closure
from pykafka_broker.spark.releases import Coordinates
from pykafka_broker.spark.repository import Repository
from pykafka_broker.system.named_tuple import NamedTuple


class Jar(NamedTuple):
    """A jar in the folder."""

    coordinates: Coordinates
    path: Path
    #: False: the jar was there already, and is right.
    was_fetched: bool


def fetch_jars(
    folder: Path,
    packages: Iterable[Coordinates],
    provided: Iterable[str],
    repository: Repository,
    report: Callable[[Jar], None] = lambda jar: None,
) -> list[Jar]:
    """Put these packages, and all their dependencies that are not `provided` by Spark, into a folder.

    Args:
        folder: Made if it does not exist. Other files in it are left alone.
        packages: The packages wanted.
        provided: The names of Spark's own jars.
        repository: Where they come from.
        report: Called with each jar once it is there.

    Raises:
        SparkError: the repository lacks one of them, or has it damaged.
        OSError: the folder cannot be written.
    """
    found = []
    needed = closure(packages, frozenset(provided), repository.pom)
    folder.mkdir(parents=True, exist_ok=True)
    for coordinates in needed:
        jar = Jar(coordinates, folder / coordinates.jar, repository.fetch(coordinates, folder))
        report(jar)
        found.append(jar)
    return found


def jars_in(folder: Path, installation: Installation) -> list[Path]:
    """The jars of a folder that was made for this Spark.

    Raises:
        SparkError: there is none, or they do not fit.
    """
    paths = sorted(folder.glob("*.jar"))
    if not paths:
        raise SparkError(f"{folder} has no jars:\n  pykafka-broker spark jars --dest {folder}")
    wanted = Wanted(installation.spark, installation.scala)
    wrong = [fault for fault in faults([path.name for path in paths], wanted) if not fault.is_warning]
    if wrong:
        raise SparkError(f"The jars in {folder} do not fit: {wrong[0].message} {wrong[0].remedy}")
    return paths
