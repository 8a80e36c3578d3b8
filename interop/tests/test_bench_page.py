"""Sections of bench/README.md tell what was measured last, and which floors it missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interop import bench_page
from interop.bench_page import cluster, missed_floors, second_at_once, section

AT_ONCE = "cluster_again_at_once.seconds"


def measured(ours: float, apache: float) -> dict[str, dict[str, float]]:
    return {"apache": {AT_ONCE: apache}, "ours": {AT_ONCE: ours}}


def test_a_figure_has_three_digits_and_one_that_was_not_measured_no_row() -> None:
    apache = {"cluster_produce.mb_s": 74.42775, "cluster_client.kill_s": 10.0649}
    ours = {"cluster_produce.mb_s": 1220.4, "cluster_move.seconds": 0.030242, "cluster_client.kill_s": 2.0081}
    ours |= {"cluster_client.restart_s": 0.1469}

    head, _, *rows = cluster(
        {"file": "DAY-cluster.json", "values": {"apache": apache, "ours": ours}}
    ).splitlines()

    assert head == "| `results/DAY-cluster.json` | Apache Kafka | ours |"
    assert [row.split(" | ")[1:] for row in rows] == [
        ["", "0.0302 s |"],
        ["10.1 s", "2.01 s; 0.147 s |"],
        ["74.4 MB/s", "1,220 MB/s |"],
    ]


def test_the_p99_of_bulk_is_shown_where_it_was_measured() -> None:
    table = cluster({"file": "DAY-cluster.json", "values": {"ours": {"cluster_produce.bulk_p99_ms": 41.26}}})

    assert table.splitlines()[2:] == ["| p99 of its requests | 41.3 ms |"]


def test_a_row_is_of_the_newest_result_that_has_it_of_both_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was of an older result of its own, and so did not tell that the floor is missed."""
    results = {
        "2-again.json": ("2026-11-27T23:54:30Z", measured(0.058, 0.063), {}),
        "1-cluster.json": ("2026-11-28T12:51:56Z", measured(0.061, 0.049), {AT_ONCE: "<= 1x"}),
        "3-alone.json": ("2026-11-29T00:00:00Z", {"ours": {AT_ONCE: 0.05}}, {}),
    }
    for name, (began, values, missed) in results.items():
        report = {"began": began, "values": values, "missed": missed}
        (tmp_path / name).write_text(json.dumps(report))
    (tmp_path / "4-scale.json").write_text(json.dumps({"partitions": {}}))
    monkeypatch.setattr(bench_page, "RESULTS", tmp_path)

    told = section(second_at_once, ["cluster_again_at_once"])()

    assert "takes 61 ms, 1.24x of Apache Kafka's 49 ms (`results/1-cluster.json`)." in told
    assert told.endswith("Missed floors: `cluster_again_at_once.seconds` (1.24x, floor <= 1x).\n")


def test_only_floors_of_the_rows_of_a_section_are_told() -> None:
    report = {"missed": {AT_ONCE: "<= 1x"}, "values": measured(0.061, 0.049)}
    assert missed_floors(report, ["cluster_first"]) == "\nNo floor is missed.\n"
