"""docs/scale.md tells what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interop import scale_page
from interop.scale_page import (
    BROKERS,
    HOST,
    PARTITIONS,
    brokers,
    connections,
    failover,
    fit,
    host,
    limits,
    partitions,
    replicas,
    section,
)


def report(*counts: int) -> dict[str, Any]:
    """One in which all grows with the partitions alone, and each node leads half of them."""
    figures = {
        str(count): {row.key: count / 100 for row in PARTITIONS} | {"led": count / 2} for count in counts
    }
    return {"partitions": figures}


def test_the_table_has_a_column_for_each_number_of_partitions_and_the_straight_line() -> None:
    head, _, memory, *_, failover, led = partitions(report(100, 2_000)).splitlines()

    assert head == "|  | 100 | 2,000 | without | each 1,000 more |"
    assert memory == "| memory of a node, MB | 1 | 20 | 0 | 10.00 |"
    assert led == "| partitions that it led | 50 | 1,000 |  |  |"
    assert failover.endswith(" until other nodes lead all its partitions | 1.00 | 20.00 | 0.00 | 20.00 |")


def test_a_run_that_went_on_later_shows_its_numbers_in_their_order() -> None:
    assert partitions(report(2_000, 100)) == partitions(report(100, 2_000))


def test_a_single_replica_tells_the_cost_of_a_partition_from_that_of_a_replica() -> None:
    # 1 MB, 2 for each 1,000 partitions, and 3 for each 1,000 replicas: all of the partitions, or a third.
    every = {"1000": {"memory_mb": 1 + 2 + 3}, "3000": {"memory_mb": 1 + 6 + 9}}
    single = {"3000": {"memory_mb": 1 + 6 + 3}}

    head, _, memory = replicas({"partitions": every, "one_replica": single}).splitlines()
    assert head == "|  | 3,000 | each 1,000 partitions | each 1,000 replicas on each node |"
    assert memory == "| memory of a node, MB | 10 | 2.00 | 3.00 |"


def test_the_line_of_connections_begins_with_none() -> None:
    figures = {str(count): {"memory_kb": 4 * count, "cpu_percent": count / 10_000} for count in (500, 1_000)}

    head, _, memory, processor = connections({"connections": figures}).splitlines()
    assert head == "|  | 500 | 1,000 | each 1,000 more |"
    assert memory == "| memory of the node, MB | 2.0 | 4.0 | 4.00 |"
    assert processor == "| its processor time, % of a core | 0.05 | 0.10 | 0.10 |"

    [*_, memory, _] = connections({"connections": {"500": figures["500"]}}).splitlines()
    assert memory == "| memory of the node, MB | 2.0 | 4.00 |"


def test_the_line_is_that_of_the_least_squares_and_needs_figures_enough() -> None:
    assert fit([0, 3, 3], [0, 1, 2]) == pytest.approx([0.5, 1.5])

    with pytest.raises(ValueError, match="1 figures do not tell 2 costs apart"):
        fit([1], [100])


def test_what_was_measured_of_a_broker_has_a_row_and_what_was_not_has_none() -> None:
    found = {"memory_mb_each": 0.033, "told_s": 0.5, "brokers": 3}
    said = brokers({"brokers": found}).splitlines()

    assert said[2:] == [
        "| memory of each other node, kB | 33 |",
        "| kill -9 of it until all others tell clients that it has gone, s | 0.50 |",
    ]
    assert len(brokers({"brokers": dict.fromkeys((row.key for row in BROKERS), 1)}).splitlines()) == 9


def test_the_limits_follow_from_the_most_partitions_and_from_the_straight_line() -> None:
    said = limits(report(100, 2_000, 1_000))

    assert "20 % of a core at 2,000 idle ones, 10.0 % for each 1,000: half a core at 5,000 |" in said
    assert "10.0 kB each: 100,000 in 1.0 GB |" in said
    assert "1,000 partitions of a killed node have other leaders within 20.0 s |" in said


def test_the_failover_of_most_partitions_has_a_sentence_and_is_the_limit() -> None:
    found = report(100, 2_000) | {
        "failover": {"12000": {"failover_s": 2.449, "moving_s": 0.98, "led": 5_274}}
    }

    assert failover(found) == (
        "With 12,000 partitions, a killed node led 5,274 of them. All had other leaders 2.45 s later,\n"
        "and the first moved 1.0 s before the last.\n"
    )
    assert "5,274 partitions of a killed node have other leaders within 2.4 s |" in limits(found)


def test_one_node_stands_beside_two() -> None:
    measured = {"1": dict.fromkeys((row.key for row in HOST), 1_500), "2": {row.key: 2_500 for row in HOST}}
    head, _, acks, *_ = host({"host": measured}).splitlines()
    assert head == "|  | 1 node | 2 nodes |"
    assert acks == "| 16 connections, one record each at a time, acks/s | 1,500 | 2,500 |"


def test_the_newest_report_of_our_broker_counts_and_the_page_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale_page, "RESULTS", tmp_path)
    for name, broker in [("2026-01-01", "ours"), ("2026-01-02", "ours"), ("2026-01-03", "apache")]:
        (tmp_path / f"{name}-scale.json").write_text(json.dumps({"broker": broker, "day": name}))

    assert scale_page.load() == {"broker": "ours", "day": "2026-01-02"}
    assert section(lambda found: found["day"], "day")() == "2026-01-02"
    assert section(host, "host")() == "This was not measured.\n"
