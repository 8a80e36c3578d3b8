"""The figures of docs/scale.md, made of what `python -m bench.scale` has stored of our broker last."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parents[1] / "bench" / "results"
#: Half a core, in percent.
HALF_A_CORE = 50
#: So many replicas are named as an example of their memory.
MANY_REPLICAS = 100_000

Report = dict[str, Any]


class Row(NamedTuple):
    title: str
    key: str
    digits: int = 0
    divisor: float = 1
    #: The digits of what each thousand add; None where no straight line is shown.
    slope_digits: int | None = None


PARTITIONS = (
    Row("memory of a node, MB", "memory_mb", slope_digits=2),
    Row("processor time of an idle node, % of a core", "cpu_percent", 1, slope_digits=2),
    Row("metadata log, kB", "metadata_kb", slope_digits=2),
    Row("disk of a node, MB", "folder_kb", 1, 1_000, slope_digits=1),
    Row("until all are replicated after their creation, s", "create_s", 1),
    Row("start of a node that was stopped, s", "start_s", 2, slope_digits=2),
    Row("until it is in sync again, s", "in_sync_s", 1),
    Row("kill -9 of a node until no partition is led by it, s", "failover_s", 2),
    Row("partitions that it led", "led"),
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


def section(text: Callable[[Report], str]) -> Callable[[], str]:
    """The text of a section of the page, of the newest report."""
    return lambda: text(load())


def partitions(report: Report) -> str:
    measured = report["partitions"]
    head = [f"{int(count):,}" for count in measured]
    lines = table(["", *head, "without", "each 1,000 more"], len(head) + 2)
    for row in PARTITIONS:
        cells = [number(row, figures[row.key], row.digits) for figures in measured.values()]
        fitted = ["", ""]
        if row.slope_digits is not None:
            fit = report["fit"][row.key]
            fitted = [
                number(row, fit["without"], row.digits),
                number(row, fit["per_thousand"], row.slope_digits),
            ]
        lines.append(cells_of([row.title, *cells, *fitted]))
    return "".join(lines)


def connections(report: Report) -> str:
    found = report["connections"]
    return (
        f"An idle connection costs {found['kb_each']:.1f} kB, and {found['connections']:,} of them together "
        f"{found['cpu_percent']:.1f} % of a core.\n"
    )


def brokers(report: Report) -> str:
    found = report["brokers"]
    kilobytes = found["memory_mb_each"] * 1000
    return (
        f"A further broker without partitions costs each of the others {kilobytes:.0f} kB and "
        f"{found['cpu_percent_each']:.2f} % of a core, and has itself {found['own_memory_mb']:.0f} MB.\n"
    )


def limits(report: Report) -> str:
    """What ends the growth of a node."""
    most = max(report["partitions"], key=int)
    figures, fit = report["partitions"][most], report["fit"]
    memory, processor = fit["memory_mb"], fit["cpu_percent"]
    thousands = (HALF_A_CORE - processor["without"]) / processor["per_thousand"]
    gigabytes = (memory["without"] + memory["per_thousand"] * MANY_REPLICAS / 1000) / 1000
    rows = [
        [
            "replicas, by processor",
            f"{figures['cpu_percent']:.0f} % of a core at {int(most):,} idle ones, "
            f"{processor['per_thousand']:.1f} % for each 1,000: half a core at {thousands:.0f},000",
        ],
        [
            "replicas, by memory",
            f"{memory['per_thousand']:.1f} kB each: {MANY_REPLICAS:,} in {gigabytes:.1f} GB",
        ],
        [
            "replicas, by failover",
            f"{figures['led']:,.0f} partitions of a killed node have other leaders within "
            f"{figures['failover_s']:.1f} s",
        ],
    ]
    return "".join(["| what | limit for a node |\n|---|---|\n", *map(cells_of, rows)])


def host(report: Report) -> str:
    """One node beside two on the same host, once that is measured."""
    if "host" not in report:
        return "How far that goes was not measured.\n"
    measured = report["host"]
    lines = table(["", *(f"{count} node{'s' * (count != '1')}" for count in measured)], len(measured))
    lines += [
        cells_of([row.title, *(number(row, figures[row.key], row.digits) for figures in measured.values())])
        for row in HOST
    ]
    return "".join(lines)


def table(head: Sequence[str], numbers: int) -> list[str]:
    """The first lines of a table whose last columns are numbers."""
    return [cells_of(head), "|---|" + "--:|" * numbers + "\n"]


def cells_of(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def number(row: Row, value: float, digits: int) -> str:
    return f"{value / row.divisor:,.{digits}f}"
