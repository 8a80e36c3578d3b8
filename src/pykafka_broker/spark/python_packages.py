"""The Python packages that jobs need beside pyspark: looked for before a job begins, and not imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from pykafka_broker.spark.errors import Fault, SparkError

#: The packages that `pykafka_broker.arrow` needs.
ARROW = ("numpy", "pyarrow")
#: The packages that `mapInArrow` needs: pyspark insists on pandas for every function over Arrow batches.
MAP_IN_ARROW = ("numpy", "pandas", "pyarrow")


def missing(packages: Sequence[str]) -> list[str]:
    """The packages that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def how_to_install(packages: Sequence[str]) -> str:
    """The command for a terminal."""
    return f"python3 -m pip install {' '.join(packages)}"


def insist_on(packages: Sequence[str], what: str) -> None:
    """Check that the packages are there.

    Args:
        packages: Their names.
        what: What needs them, as the beginning of a sentence.

    Raises:
        SparkError: one is not installed; the message has the command.
    """
    if lacking := missing(packages):
        raise SparkError(f"{_sentence(packages, lacking, what)}:\n  {how_to_install(lacking)}")


def fault(packages: Sequence[str], what: str) -> Fault | None:
    """The same as a warning, because Spark works without the packages."""
    lacking = missing(packages)
    if not lacking:
        return None
    return Fault(f"{_sentence(packages, lacking, what)}.", how_to_install(lacking), is_warning=True)


def _sentence(packages: Sequence[str], lacking: Sequence[str], what: str) -> str:
    verb = "is" if len(lacking) == 1 else "are"
    return f"{what} {_listed(packages)}, and {_listed(lacking)} {verb} not installed"


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
