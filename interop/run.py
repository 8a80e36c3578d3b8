"""Run the matrix: every scenario with every client, one table, non-zero on a failure."""

from __future__ import annotations

import importlib
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interop.clients.client import Client
from interop.world import World

MATRIX = Path(__file__).parent / "matrix.toml"

Run = Callable[[World, Client], None]

SHOWN = {"pass": "ok {:.1f}s", "lacks": "-", "fails": "FAIL {:.1f}s"}


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
    """By scenario and client: "pass", "lacks: why" or "fails: why"; and the failures at length."""

    cells: dict[str, dict[str, str]] = field(default_factory=dict)
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
            cell = run_cell(world, scenario, client, results)
            results.cells.setdefault(scenario.name, {})[name] = cell
            shown.append(SHOWN[cell.partition(":")[0]].format(time.monotonic() - began))
        report(row(scenario.title, shown))
    return results


def run_cell(world: World, scenario: Scenario, client: Client, results: Results) -> str:
    if client.name in scenario.lacks:
        return f"lacks: {scenario.lacks[client.name]}"
    try:
        scenario.run(world, client)
    except Exception as error:
        where = traceback.format_exc(limit=-4)
        results.failures.append(f"{scenario.title} with {client.name}: {error}\n{where}")
        if not world.broker.is_running:
            world.broker.start()
        return f"fails: {str(error).partition(chr(10))[0]}"
    return "pass"


def row(title: str, cells: Sequence[str]) -> str:
    return f"{title:<64}" + "".join(f"{cell:<16}" for cell in cells)
