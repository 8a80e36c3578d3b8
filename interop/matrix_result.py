"""The stored results of runs, which `python -m interop --store` writes and pages read:
`results/matrix.json` of the clients, `results/security.json` of the same on a secured node,
`results/spark.json` of the releases of Spark. Those of several nodes are stored beside them (`of_nodes`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

STORED = Path(__file__).parent / "results" / "matrix.json"
STORED_SPARK = STORED.with_name("spark.json")
STORED_SECURITY = STORED.with_name("security.json")


def of_nodes(path: Path, nodes: int) -> Path:
    """Where the same is stored of a cluster of so many nodes; of one node, `path`."""
    return path if nodes == 1 else path.with_stem(f"{path.stem}-{nodes}-nodes")


#: The first word of a cell; "lacks" and "fails" are followed by a colon and the reason, "pass"
#: by what else was done meanwhile, if anything was.
OUTCOMES = ("pass", "lacks", "fails")


@dataclass(frozen=True)
class Row:
    """One scenario: its name and its cells, in the order of the clients."""

    scenario: str
    cells: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name of a function in words; other names, which have spaces, as they are."""
        name = self.scenario.partition(".")[2]
        return name if " " in name else name.replace("_", " ")


@dataclass(frozen=True)
class MatrixResult:
    #: The version that each client gives, by name.
    versions: dict[str, str]
    #: By scenario, by client.
    cells: dict[str, dict[str, str]]

    def rows(self) -> Iterator[Row]:
        for scenario, cells in self.cells.items():
            yield Row(scenario, tuple(cells[client] for client in self.versions))

    def updated(self, newer: MatrixResult) -> MatrixResult:
        """With the cells of a newer result, for the scenarios and the clients that it has."""
        replaced = {name: {**self.cells.get(name, {}), **row} for name, row in newer.cells.items()}
        return MatrixResult({**self.versions, **newer.versions}, {**self.cells, **replaced})

    def of(self, clients: Sequence[str], scenarios: Sequence[str]) -> MatrixResult:
        versions = {name: version for name, version in self.versions.items() if name in clients}
        return MatrixResult(
            versions,
            {
                scenario: {name: cell for name, cell in cells.items() if name in versions}
                for scenario, cells in self.cells.items()
                if scenario in scenarios
            },
        )

    def as_json(self) -> str:
        text = json.dumps({"versions": self.versions, "cells": self.cells}, indent=1, sort_keys=True)
        return text + "\n"

    def as_markdown(self) -> str:
        """A table with a column for each client, and below it the reasons by number."""
        reasons: dict[str, int] = {}
        lines = [
            "| scenario | "
            + " | ".join(f"{name} {version}" for name, version in self.versions.items())
            + " |",
            "|---|" + ":-:|" * len(self.versions),
        ]
        for row in self.rows():
            shown = []
            for cell in row.cells:
                outcome, _, reason = cell.partition(": ")
                number = reasons.setdefault(reason, len(reasons) + 1) if reason else 0
                mark = {"pass": "✓", "lacks": "-", "fails": "✗"}[outcome]
                shown.append(f"{mark} [{number}]" if number else mark)
            lines.append(f"| {row.title} | " + " | ".join(shown) + " |")
        lines += ["", *(f"{number}. {reason}" for reason, number in reasons.items())]
        return "\n".join(lines) + "\n"


def load(path: Path = STORED) -> MatrixResult:
    if not path.exists():
        return MatrixResult({}, {})
    stored = json.loads(path.read_text())
    return MatrixResult(stored["versions"], stored["cells"])
