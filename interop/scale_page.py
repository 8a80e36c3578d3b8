"""The figures of docs/scale.md, made of what `python -m bench.scale` has stored of our broker last.

Straight lines are those of the least squares: what there is without any, and what each one adds. What the
report lacks is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parents[1] / "bench" / "results"
#: Of the clusters of the report.
NODES = 3
#: Half a core, in percent.
HALF_A_CORE = 50
#: So many replicas are named as an example of their memory.
MANY_REPLICAS = 100_000

Report = dict[str, Any]
Figures = Mapping[str, float]


class Row(NamedTuple):
    title: str
    key: str
    digits: int = 0
    divisor: float = 1
    #: The digits of what each thousand add; None where no straight line is shown.
    slope_digits: int | None = None
    #: The figure that the line is drawn over, instead of the number in the head of the column.
    over: str | None = None


PARTITIONS = (
    Row("memory of a node, MB", "memory_mb", slope_digits=2),
    Row("processor time of an idle node, % of a core", "cpu_percent", 1, slope_digits=2),
    Row("metadata log, kB", "metadata_kb", slope_digits=2),
    Row("disk of a node, MB", "folder_kb", 1, 1_000, slope_digits=1),
    Row("until all are replicated after their creation, s", "create_s", 1),
    Row("start of a node that was stopped, s", "start_s", 2, slope_digits=2),
    Row("until it is in sync again, s", "in_sync_s", 1),
    Row(
        "seconds from kill -9 of a node until other nodes lead all its partitions",
        "failover_s",
        2,
        slope_digits=2,
        over="led",
    ),
    Row("partitions that it led", "led"),
)
CONNECTIONS = (
    Row("memory of the node, MB", "memory_kb", 1, 1_000, slope_digits=2),
    Row("its processor time, % of a core", "cpu_percent", 2, slope_digits=2),
)
BROKERS = (
    Row("memory of each other node, kB", "memory_mb_each", 0, 0.001),
    Row("processor time of each other node, % of a core", "cpu_percent_each", 2),
    Row("metadata log, kB", "metadata_kb_each", 2),
    Row("its own memory, MB", "own_memory_mb"),
    Row("its own processor time, % of a core", "own_cpu_percent", 2),
    Row("its start, s", "start_s", 2),
    Row("kill -9 of it until all others tell clients that it has gone, s", "told_s", 2),
)
HOST = (
    Row("16 connections, one record each at a time, acks/s", "acks_per_s"),
    Row("p99, ms", "acks_p99_ms", 1),
    Row("produce 1 KB records, MB/s", "mb_s"),
    Row("processor time of all nodes for it, s/GB", "s_per_gb", 2),
    Row("memory of all nodes, MB", "memory_mb"),
)


def load() -> Report:
    """The newest report of our broker."""
    reports: list[Report] = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*-scale.json"))]
    return next(report for report in reversed(reports) if report["broker"] == "ours")


def section(text: Callable[[Report], str], part: str) -> Callable[[], str]:
    """The text of a section of the page, made of this part of the newest report."""

    def made() -> str:
        report = load()
        return text(report) if part in report else "This was not measured.\n"

    return made


def partitions(report: Report) -> str:
    measured = by_number(report["partitions"])
    lines = table(["", *map(thousands, measured), "without", "each 1,000 more"], len(measured) + 2)
    for row in known(PARTITIONS, measured.values()):
        values = [figures[row.key] for figures in measured.values()]
        fitted = ["", ""]
        if row.slope_digits is not None:
            numbers = [figures[row.over] if row.over else count for count, figures in measured.items()]
            without, slope = fit(values, numbers)
            fitted = [number(row, without, row.digits), number(row, slope * 1000, row.slope_digits)]
        lines.append(cells_of([row.title, *(number(row, value, row.digits) for value in values), *fitted]))
    return "".join(lines)


def failover(report: Report) -> str:
    """A line for each cluster of which only this was measured."""
    return "".join(
        f"With {count:,} partitions, a killed node led {found['led']:,} of them. All had other leaders "
        f"{found['failover_s']:.2f} s later,\n"
        f"and the first moved {found['moving_s']:.1f} s before the last.\n"
        for count, found in by_number(report["failover"]).items()
    )


def replicas(report: Report) -> str:
    """What partitions with a single replica tell, beside those with a replica on every node."""
    single = by_number(report["one_replica"])
    every = by_number(report["partitions"])
    head = ["", *map(thousands, single), "each 1,000 partitions", "each 1,000 replicas on each node"]
    lines = table(head, len(single) + 2)
    rows = [row for row in PARTITIONS if row.slope_digits is not None and row.over is None]
    for row in known(rows, [*every.values(), *single.values()]):
        shown = [figures[row.key] for figures in single.values()]
        _, *slopes = fit(
            [*(figures[row.key] for figures in every.values()), *shown],
            [*every, *single],
            [*every, *(count / NODES for count in single)],
        )
        cells = [number(row, value, row.digits) for value in shown]
        cells += [number(row, slope * 1000, row.slope_digits or 0) for slope in slopes]
        lines.append(cells_of([row.title, *cells]))
    return "".join(lines)


def connections(report: Report) -> str:
    measured = by_number(report["connections"])
    lines = table(["", *map(thousands, measured), "each 1,000 more"], len(measured) + 1)
    for row in known(CONNECTIONS, measured.values()):
        values = [figures[row.key] for figures in measured.values()]
        # The figures are what connections add: none add nothing.
        _, slope = fit([0, *values], [0, *measured])
        cells = [number(row, value, row.digits) for value in values]
        lines.append(cells_of([row.title, *cells, number(row, slope * 1000, row.slope_digits or 0)]))
    return "".join(lines)


def brokers(report: Report) -> str:
    found = report["brokers"]
    rows = [[row.title, number(row, found[row.key], row.digits)] for row in known(BROKERS, [found])]
    return "".join([*table(["a further broker without partitions", "costs"], 1), *map(cells_of, rows)])


def limits(report: Report) -> str:
    """What ends the growth of a node."""
    measured = by_number(report["partitions"])
    most = max(measured)
    figures = measured[most]
    failovers = [*measured.values(), *report.get("failover", {}).values()]
    most_led = max(failovers, key=lambda found: found["led"])
    memory, memory_each = fit([each["memory_mb"] for each in measured.values()], measured)
    processor, processor_each = fit([each["cpu_percent"] for each in measured.values()], measured)
    half_a_core = (HALF_A_CORE - processor) / processor_each
    gigabytes = (memory + memory_each * MANY_REPLICAS) / 1000
    rows = [
        [
            "replicas, by processor",
            f"{figures['cpu_percent']:.0f} % of a core at {most:,} idle ones, "
            f"{processor_each * 1000:.1f} % for each 1,000: half a core at {round(half_a_core, -3):,.0f}",
        ],
        [
            "replicas, by memory",
            f"{memory_each * 1000:.1f} kB each: {MANY_REPLICAS:,} in {gigabytes:.1f} GB",
        ],
        [
            "replicas, by failover",
            f"{most_led['led']:,.0f} partitions of a killed node have other leaders within "
            f"{most_led['failover_s']:.1f} s",
        ],
    ]
    return "".join(["| what | limit for a node |\n|---|---|\n", *map(cells_of, rows)])


def host(report: Report) -> str:
    """One node beside two on the same host."""
    measured = by_number(report["host"])
    lines = table(["", *(f"{count} node{'s' * (count != 1)}" for count in measured)], len(measured))
    lines += [
        cells_of([row.title, *(number(row, figures[row.key], row.digits) for figures in measured.values())])
        for row in HOST
    ]
    return "".join(lines)


#: The sections of the page, each with the part of the report that it is made of.
SECTIONS = (
    (partitions, "partitions"),
    (failover, "failover"),
    (replicas, "one_replica"),
    (connections, "connections"),
    (brokers, "brokers"),
    (limits, "partitions"),
    (host, "host"),
)


def fit(values: Sequence[float], *numbers: Iterable[float]) -> list[float]:
    """The linear function of these numbers that comes next to the values, by the least squares: its value
    where all of them are 0, and what one more of each adds.

    Raises:
        ValueError: more than one such function comes as near, as where there is a single value.
    """
    places = np.column_stack([np.ones(len(values)), *map(list, numbers)])
    found, _, rank, _ = np.linalg.lstsq(places, np.array(values), rcond=None)
    if rank < len(found):
        raise ValueError(f"{len(values)} figures do not tell {len(found)} costs apart")
    return [float(each) for each in found]


def by_number(measured: Mapping[str, Figures]) -> dict[int, Figures]:
    """What was measured for each number, in their order."""
    return {count: measured[str(count)] for count in sorted(map(int, measured))}


def known(rows: Iterable[Row], measured: Iterable[Figures]) -> list[Row]:
    """The rows that all of what was measured has."""
    every = list(measured)
    return [row for row in rows if all(row.key in figures for figures in every)]


def thousands(count: int) -> str:
    return f"{count:,}"


def table(head: Sequence[str], numbers: int) -> list[str]:
    """The first lines of a table whose last columns are numbers."""
    return [cells_of(head), "|---|" + "--:|" * numbers + "\n"]


def cells_of(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def number(row: Row, value: float, digits: int) -> str:
    return f"{value / row.divisor:z,.{digits}f}"
