"""Run the matrix: every scenario with every client, one table, non-zero on a failure.

With several nodes one of them is killed in the middle of some scenarios, and started again.
"""

from __future__ import annotations

import importlib
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interop.clients.client import Client
from interop.world import Broker, World

MATRIX = Path(__file__).parent / "matrix.toml"

Run = Callable[[World, Client], None]

SHOWN = {"pass": "ok {:.1f}s", "lacks": "-", "fails": "FAIL {:.1f}s"}
#: What is noted of a scenario that has passed all the same.
KILLED = "one of the nodes was killed in the middle, and started again"


@dataclass(frozen=True)
class Scenario:
    name: str
    run: Run
    lacks: dict[str, str]
    #: Whether one of several nodes is killed in the middle, and of the clients that do not stand it why.
    is_killed: bool = False
    spared: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.name.partition(".")[2].replace("_", " ")


@dataclass
class Results:
    """By scenario and client: "pass", "lacks: why" or "fails: why"; and the failures at length.

    "pass: one of the nodes was killed ..." says what the scenario has gone through.
    """

    cells: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def load_matrix() -> tuple[list[str], list[Scenario]]:
    matrix = tomllib.loads(MATRIX.read_text())
    return matrix["clients"], [load_scenario(row) for row in matrix["scenario"]]


def load_scenario(row: dict[str, Any]) -> Scenario:
    name = str(row["run"])
    module, _, function = name.partition(".")
    run: Run = getattr(importlib.import_module(f"interop.scenarios.{module}"), function)
    lacks: dict[str, str] = row.get("lacks", {})
    spared: dict[str, str] = row.get("spared", {})
    return Scenario(name, run, lacks, is_killed=bool(row.get("kill", False)), spared=spared)


def run_matrix(
    world: World, scenarios: Sequence[Scenario], report: Callable[[str], None], *, kills: bool = False
) -> Results:
    """With `kills`, those that can stand it are held with a kill of one of several nodes."""
    results = Results()
    for scenario in scenarios:
        shown = []
        for name, client in world.clients.items():
            began = time.monotonic()
            is_killed = kills and scenario.is_killed and name not in scenario.spared
            cell = run_cell(world, scenario, client, results, is_killed=is_killed)
            results.cells.setdefault(scenario.name, {})[name] = cell
            outcome, _, reason = cell.partition(": ")
            told = SHOWN[outcome].format(time.monotonic() - began)
            shown.append(f"{told} kill" if reason == KILLED else told)
        report(row(scenario.title, shown))
    return results


def run_cell(world: World, scenario: Scenario, client: Client, results: Results, *, is_killed: bool) -> str:
    if client.name in scenario.lacks:
        return f"lacks: {scenario.lacks[client.name]}"
    try:
        if is_killed:
            with killing_a_node(world):
                scenario.run(world, client)
        else:
            scenario.run(world, client)
    except Exception as error:
        where = traceback.format_exc(limit=-4)
        meanwhile = ", a node killed meanwhile" if is_killed else ""
        results.failures.append(f"{scenario.title} with {client.name}{meanwhile}: {error}\n{where}")
        if not world.broker.is_running:
            world.broker.start()
        return f"fails: {str(error).partition(chr(10))[0]}"
    return f"pass: {KILLED}" if is_killed else "pass"


@contextmanager
def killing_a_node(world: World) -> Iterator[None]:
    """Kill a node in the middle of the block, and start it again, beside what goes on; wait for its start.

    Raises AssertionError if the block never comes to its middle.
    """
    done: list[Future[None]] = []
    with ThreadPoolExecutor(1) as beside:
        world.in_the_middle = lambda: done.append(beside.submit(kill_and_start, world.broker))
        try:
            yield
        finally:
            world.in_the_middle = None
    assert done, "it has created no topic: no node was killed"
    done[0].result()


def kill_and_start(broker: Broker) -> None:
    broker.kill()
    broker.start()


def row(title: str, cells: Sequence[str]) -> str:
    return f"{title:<64}" + "".join(f"{cell:<16}" for cell in cells)
