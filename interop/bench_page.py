"""The table of three nodes in bench/README.md, made of what `python -m bench --rows cluster` has stored last
as `DAY-cluster.json`. What that result lacks is left out.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from interop.scale_page import RESULTS, cells_of

Report = dict[str, Any]

#: The brokers of the table, by their names in the result.
BROKERS = {"apache": "Apache Kafka", "ours": "ours"}


class Row(NamedTuple):
    title: str
    #: Each with its unit.
    figures: dict[str, str]


CLUSTER = (
    Row(
        "`cluster_leader`: kill -9 of the leader until a record is acknowledged",
        {"cluster_leader.seconds": "s"},
    ),
    Row("`cluster_follower`: of a follower", {"cluster_follower.seconds": "s"}),
    Row(
        "`cluster_controller`: of the active controller, which leads as well",
        {"cluster_controller.seconds": "s"},
    ),
    Row("`cluster_move`: longest gap while a leader moves", {"cluster_move.seconds": "s"}),
    Row("`cluster_restart`: longest gap of a rolling restart", {"cluster_restart.seconds": "s"}),
    Row(
        "`cluster_client`: kill -9 of the leader; a rolling restart, as a producer of librdkafka sees them",
        {"cluster_client.kill_s": "s", "cluster_client.restart_s": "s"},
    ),
    Row("`cluster_produce`: three replicas, acks=all", {"cluster_produce.mb_s": "MB/s"}),
    Row("p99 of its requests", {"cluster_produce.bulk_p99_ms": "ms"}),
    Row("processor time of all nodes for it", {"cluster_produce.cpu": "s/GB"}),
    Row(
        "16 connections, one record each at a time; p99",
        {"cluster_produce.acks_per_s": "acks/s", "cluster_produce.p99_ms": "ms"},
    ),
    Row("memory of a node after this", {"cluster_produce.memory": "MB"}),
    Row("`cluster_catch_up`: a follower that was away", {"cluster_catch_up.mb_s": "MB/s"}),
)


def load() -> Report:
    """The newest result of three nodes, and the name of its file as `file`."""
    newest = max(RESULTS.glob("*-cluster.json"))
    report: Report = json.loads(newest.read_text())
    return {**report, "file": newest.name}


def cluster(report: Report) -> str:
    brokers = [broker for broker in BROKERS if broker in report["values"]]
    head = [f"`results/{report['file']}`", *(BROKERS[broker] for broker in brokers)]
    lines = [cells_of(head), "|---" * len(head) + "|\n"]
    for row in CLUSTER:
        cells = [measured(row, report["values"][broker]) for broker in brokers]
        if any(cells):
            lines.append(cells_of([row.title, *cells]))
    return "".join(lines)


def measured(row: Row, values: dict[str, float]) -> str:
    """Its figures of one broker that were measured, with their units."""
    return "; ".join(f"{number(values[key])} {unit}" for key, unit in row.figures.items() if key in values)


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"
