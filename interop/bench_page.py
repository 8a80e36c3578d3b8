"""Sections of bench/README.md, each made of the newest result that `python -m bench` has stored of its rows
and both brokers. Figures that it lacks are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
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

SECURITY = (
    Row("`tls_produce`: 1 KB records", {"tls_produce.mb_s": "MB/s"}),
    Row("processor time of the broker", {"tls_produce.cpu": "s/GB"}),
    Row(
        "of what plain text moves per second of processor time; of what the cipher leaves of that",
        {"tls_produce.share": "", "tls_produce.of_possible": ""},
    ),
    Row("`tls_consume`: the same from page cache", {"tls_consume.mb_s": "MB/s"}),
    Row("processor time of the broker", {"tls_consume.cpu": "s/GB"}),
    Row(
        "of what plain text moves per second of processor time; of what the cipher leaves of that",
        {"tls_consume.share": "", "tls_consume.of_possible": ""},
    ),
    Row("`acls`: one record with 100,000 ACLs, as a multiple of that with one", {"acls.ratio": ""}),
)


def section(text: Callable[[Report], str], rows: Collection[str]) -> Callable[[], str]:
    """The text of a section about these rows, and which of their floors are missed. The report has the name
    of its file as `file`.
    """

    def made() -> str:
        stored = ({**json.loads(file.read_text()), "file": file.name} for file in RESULTS.glob("*.json"))
        newest = max((report for report in stored if _has(report, rows)), key=lambda report: report["began"])
        return text(newest) + missed_floors(newest, rows)

    return made


def _has(report: Report, rows: Collection[str]) -> bool:
    """Whether it has these rows, for both brokers."""
    values = report.get("values", {})
    return all({*rows} <= _rows(values.get(broker, ())) for broker in BROKERS)


def _rows(keys: Iterable[str]) -> set[str]:
    """The rows of figures."""
    return {key.partition(".")[0] for key in keys}


def missed_floors(report: Report, rows: Collection[str]) -> str:
    """A sentence that names them, with our figures as multiples of Apache Kafka's."""
    apache, ours = (report["values"][broker] for broker in BROKERS)
    missed = [
        f"`{key}` ({ours[key] / apache[key]:.2f}x, floor {floor})"
        for key, floor in report["missed"].items()
        if _rows([key]) <= {*rows}
    ]
    return f"\nMissed floors: {', '.join(missed)}.\n" if missed else "\nNo floor is missed.\n"


def cluster(report: Report) -> str:
    return table(CLUSTER, report)


def security(report: Report) -> str:
    return (
        table(SECURITY, report) + f"\nOpenSSL in Python by itself: {report['machine']['TLS by itself']}. "
        f"{_loops(report['values']['ours'])}"
    )


def table(rows: Iterable[Row], report: Report) -> str:
    """A column for each broker; rows that none of them has are left out."""
    brokers = [broker for broker in BROKERS if broker in report["values"]]
    head = [f"`results/{report['file']}`", *(BROKERS[broker] for broker in brokers)]
    lines = [cells_of(head), "|---" * len(head) + "|\n"]
    for row in rows:
        cells = [measured(row, report["values"][broker]) for broker in brokers]
        if any(cells):
            lines.append(cells_of([row.title, *cells]))
    return "".join(lines)


def measured(row: Row, values: dict[str, float]) -> str:
    """Its figures of one broker that were measured, with their units."""
    return "; ".join(
        f"{number(values[key])} {unit}".rstrip() for key, unit in row.figures.items() if key in values
    )


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def first_records(report: Report) -> str:
    """The row `cluster_first` for each number of partitions that was measured."""
    brokers = [
        {key.partition(".")[2]: value for key, value in report["values"][name].items()} for name in BROKERS
    ]
    counts = sorted(int(found[1]) for key in brokers[0] if (found := re.fullmatch(r"first_(\d+)_s", key)))
    lines = [f"| `results/{report['file']}` | Apache Kafka | ours |", "|---|---|---|"]
    for count in counts:
        title = "to" if count != counts[0] else "`cluster_first`: first records, and the same again, to"
        pairs = (", ".join(_ms(each[f"{key}_{count}_s"]) for key in ("first", "second")) for each in brokers)
        lines.append(f"| {title} {count:,} partitions | {' | '.join(pairs)} |")
    deaths = " | ".join(f"{each['death_s']:.1f} s" for each in brokers)
    acks = " | ".join(f"{each['acks_1s']:,.0f}" for each in brokers)
    numbers = _and(f"{count:,}" for count in counts)
    each_us = _and(f"{brokers[1][f'first_{count}_s'] / count * 1e6:.0f} us" for count in counts)
    return "".join(
        f"{line}\n"
        for line in (
            *lines,
            f"| kill -9 of their leader until each of 1,000 has acknowledged | {deaths} |",
            f"| acknowledged in the second after the first of them | {acks} |",
            "",
            f"The first records take us {each_us} for each of {numbers} partitions.",
        )
    )


def second_at_once(report: Report) -> str:
    """The row `cluster_again_at_once`."""
    apache, ours = (report["values"][broker]["cluster_again_at_once.seconds"] for broker in BROKERS)
    return (
        "While two followers fetch what the first request to 1,000 partitions has brought "
        f"(`cluster_again_at_once`),\nthe second takes {_ms(ours)}, {ours / apache:.2f}x of Apache Kafka's "
        f"{_ms(apache)} (`results/{report['file']}`).\n"
    )


def _loops(values: dict[str, float]) -> str:
    """The row `tls_loops`: the processor time of TLS on both event loops."""
    ours = {key.partition(".")[2]: f"{value:.2f}" for key, value in values.items()}
    return (
        "On asyncio's own\nevent loop, which also uses OpenSSL, produce took "
        f"{ours['produce_asyncio']} instead of {ours['produce_uvloop']} s/GB, and consume "
        f"{ours['consume_asyncio']} instead of {ours['consume_uvloop']}.\n"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.{1 if seconds < 0.02 else 0}f} ms"


def _and(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


#: The text of each section, and its rows.
SECTIONS = (
    (cluster, _rows(key for row in CLUSTER for key in row.figures)),
    (first_records, {"cluster_first"}),
    (second_at_once, {"cluster_again_at_once"}),
    (security, _rows(key for row in SECURITY for key in row.figures)),
)
