"""docs/scale.md tells what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interop import scale_page
from interop.scale_page import HOST, PARTITIONS, host, limits, partitions


def report(*counts: int) -> dict[str, Any]:
    """One in which all grows with the partitions alone."""
    figures = {str(count): {row.key: count / 100 for row in PARTITIONS} for count in counts}
    fit = {row.key: {"without": 0, "per_thousand": 10} for row in PARTITIONS if row.slope_digits is not None}
    return {"partitions": figures, "fit": fit}


def test_the_table_has_a_column_for_each_number_of_partitions_and_the_straight_line() -> None:
    head, _, memory, *_, failover, led = partitions(report(100, 2_000)).splitlines()

    assert head == "|  | 100 | 2,000 | without | each 1,000 more |"
    assert memory == "| memory of a node, MB | 1 | 20 | 0 | 10.00 |"
    assert failover == "| kill -9 of a node until no partition is led by it, s | 1.00 | 20.00 |  |  |"
    assert led == "| partitions that it led | 1 | 20 |  |  |"


def test_the_limits_follow_from_the_most_partitions_and_from_the_straight_line() -> None:
    said = limits(report(100, 2_000, 1_000))

    assert "20 % of a core at 2,000 idle ones, 10.0 % for each 1,000: half a core at 5,000 |" in said
    assert "10.0 kB each: 100,000 in 1.0 GB |" in said
    assert "20 partitions of a killed node have other leaders within 20.0 s |" in said


def test_one_node_stands_beside_two_once_that_is_measured() -> None:
    assert host({}) == "How far that goes was not measured.\n"

    measured = {"1": dict.fromkeys((row.key for row in HOST), 1_500), "2": {row.key: 2_500 for row in HOST}}
    head, _, acks, *_ = host({"host": measured}).splitlines()
    assert head == "|  | 1 node | 2 nodes |"
    assert acks == "| 16 connections, one record each at a time, acks/s | 1,500 | 2,500 |"


def test_the_newest_report_of_our_broker_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_page, "RESULTS", tmp_path)
    for name, broker in [("2026-01-01", "ours"), ("2026-01-02", "ours"), ("2026-01-03", "apache")]:
        (tmp_path / f"{name}-scale.json").write_text(f'{{"broker": "{broker}", "day": "{name}"}}')

    assert scale_page.load() == {"broker": "ours", "day": "2026-01-02"}
