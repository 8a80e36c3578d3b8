"""Run the matrix: every scenario with every client, one table, non-zero on a failure."""

from __future__ import annotations

import importlib
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interop.clients import connect
from interop.clients.client import Client
from interop.world import World

MATRIX = Path(__file__).parent / "matrix.toml"

Run = Callable[[World, Client], None]


@dataclass(frozen=True)
class Scenario:
    name: str
    run: Run
    lacks: dict[str, str]

    @property
    def title(self) -> str:
        return self.name.partition(".")[2].replace("_", " ")


@dataclass
class Results:
    """By scenario and client: "ok", "-" (the client lacks it) or "FAIL"; and what went wrong."""

    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def load_matrix() -> tuple[list[str], list[Scenario]]:
    matrix = tomllib.loads(MATRIX.read_text())
    return matrix["clients"], [load_scenario(row) for row in matrix["scenario"]]


def load_scenario(row: dict[str, object]) -> Scenario:
    name = str(row["run"])
    module, _, function = name.partition(".")
    run: Run = getattr(importlib.import_module(f"interop.scenarios.{module}"), function)
    return Scenario(name, run, dict(row.get("lacks", {})))  # type: ignore[call-overload]


def run_matrix(world: World, scenarios: Sequence[Scenario], report: Callable[[str], None]) -> Results:
    results = Results()
    for scenario in scenarios:
        shown = []
        for name, client in world.clients.items():
            began = time.monotonic()
            results.cells[scenario.name, name] = cell = run_cell(world, scenario, client, results)
            shown.append(f"{cell} {time.monotonic() - began:.1f}s" if cell != "-" else cell)
        report(f"{scenario.title:<64}" + "".join(f"{text:<16}" for text in shown))
    return results


def run_cell(world: World, scenario: Scenario, client: Client, results: Results) -> str:
    if client.name in scenario.lacks:
        return "-"
    try:
        scenario.run(world, client)
    except Exception as error:
        where = traceback.format_exc(limit=-4)
        results.failures.append(f"{scenario.title} with {client.name}: {error}\n{where}")
        if world.broker.process is None:
            world.broker.start()
        return "FAIL"
    return "ok"


def connect_all(names: Sequence[str], bootstrap: str) -> dict[str, Client]:
    return {name: connect(name, bootstrap) for name in names}
