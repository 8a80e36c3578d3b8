"""`python -m bench`: run the rows against each broker in turn; print the table, save it with a plot."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from pathlib import Path
from typing import get_args

from bench import bare, bare_tls, cluster, first_records, load, scrapes, security, shares, spark_lane, streams
from bench.report import Report, plot
from bench.rows import COORDINATION, NOT_FOR_KFAKE, ONCE, QUORUM, ROWS, Run
from bench.systems import SYSTEMS, UnavailableError, describe_machine
from pykafka_broker.testing.apache.nodes import Software
from pykafka_broker.testing.processes import BrokerError

#: Rows that a machine's own round trip bounds.
LATENCY_ROWS = {"ping", "ping16", "echo"}
#: Rows that start nodes of their own.
ROWS_IN_ROUNDS = {
    **cluster.ROWS,
    **first_records.ROWS,
    **security.ROWS,
    **shares.ROWS,
    **streams.ROWS,
    **scrapes.ROWS,
}
#: Rows that play all clients over bare sockets, and need no other load.
PLAYED = {*first_records.ROWS, *shares.ROWS, *streams.ROWS, *scrapes.ROWS}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").split(": ", 1)[1])
    parser.add_argument("--brokers", default=",".join(SYSTEMS), help="of %(default)s")
    every_row = (*ROWS, *ROWS_IN_ROUNDS)
    parser.add_argument(
        "--rows",
        default=",".join(every_row),
        help="of %(default)s, coordination, quorum, cluster, security or newer_groups",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="size of the load (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=1, help="measure each row so often and take the median")
    parser.add_argument("--output", type=Path, help="where to save the JSON (default: bench/results)")
    chosen = parser.parse_args()
    lanes = {
        "coordination": [row.__name__ for row in COORDINATION],
        "quorum": [row.__name__ for row in QUORUM],
        "cluster": [*cluster.ROWS, *first_records.ROWS],
        "security": list(security.ROWS),
        "newer_groups": [*shares.ROWS, *streams.ROWS],
    }
    asked_rows = chosen.rows.split(",")
    chosen.rows = ",".join(",".join(lanes.get(row, [row])) for row in asked_rows)
    for name, known in (("brokers", list(SYSTEMS)), ("rows", list(every_row))):
        asked = [part for part in getattr(chosen, name).split(",") if part]
        if unknown := [part for part in asked if part not in known]:
            parser.error(f"unknown {name}: {', '.join(unknown)} (there are {', '.join(known)})")
        # In the order in which they are declared, not in which they are asked for.
        setattr(chosen, name, [part for part in known if part in asked])
    return chosen


def measure(system: str, chosen: argparse.Namespace, report: Report) -> None:
    broker = SYSTEMS[system]()
    values = report.values.setdefault(system, {})
    with contextlib.closing(broker):
        broker.start()
        run = Run(broker, chosen.scale, chosen.repeat)
        for name in chosen.rows:
            if name not in ROWS or (system == "kfake" and name in NOT_FOR_KFAKE):
                continue
            progress(f"{system}: {name}")
            try:
                results = [ROWS[name](run) for _ in range(1 if name in ONCE else chosen.repeat)]
            except Exception as error:
                report.failures[f"{system} {name}"] = f"{type(error).__name__}: {error}"
                if broker.process is None or broker.process.poll() is not None:
                    raise BrokerError(f"{system} is gone after row {name}:\n{broker.log_tail()}") from error
                continue
            for figure in results[0]:
                values[f"{name}.{figure}"] = statistics.median(result[figure] for result in results)


def measure_in_rounds(chosen: argparse.Namespace, report: Report) -> None:
    """The rows that start nodes of their own: each system in its turn, so that all see the same machine."""
    systems: list[Software] = [system for system in get_args(Software) if system in chosen.brokers]
    for name in (row for row in chosen.rows if row in ROWS_IN_ROUNDS):
        results: dict[Software, list[dict[str, float]]] = {system: [] for system in systems}
        for turn in range(chosen.repeat):
            for system in systems:
                progress(f"{system}: {name}, round {turn + 1}")
                try:
                    results[system].append(ROWS_IN_ROUNDS[name](system, chosen.scale))
                except Exception as error:
                    report.failures[f"{system} {name}"] = f"{type(error).__name__}: {error}"
        for system, rounds in results.items():
            values = report.values.setdefault(system, {})
            for figure in rounds[0] if rounds else ():
                values[f"{name}.{figure}"] = statistics.median(result[figure] for result in rounds)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    chosen = options()
    shown = {"scale": chosen.scale, "repeat": chosen.repeat}
    generator = "bare sockets" if PLAYED.issuperset(chosen.rows) else load.generator()[0]
    report = Report(describe_machine(), generator, shown)
    if "spark" in chosen.rows:
        report.machine["spark"] = spark_lane.version()
    if LATENCY_ROWS & set(chosen.rows):
        report.machine["bare round trip"] = bare.describe()
    if {"tls_produce", "tls_consume", "tls_loops"} & set(chosen.rows):
        report.machine["TLS by itself"] = bare_tls.describe()
    if not ROWS.keys().isdisjoint(chosen.rows):
        for system in chosen.brokers:
            try:
                measure(system, chosen, report)
            except (UnavailableError, BrokerError) as error:
                report.failures[system] = str(error)
    measure_in_rounds(chosen, report)
    progress("")
    report.print()
    file = report.save(chosen.output)
    print(f"saved: {file}")
    try:
        plot(report, file.with_suffix(".png"))
    except ImportError:
        print("no plot: matplotlib is not installed (extra: bench)")
    return 1 if any(what.split()[0] == "ours" for what in report.failures) else 0


if __name__ == "__main__":
    sys.exit(main())
