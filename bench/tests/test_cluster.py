"""The rows of three nodes: what is a gap, and that one is measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bench import first_records
from bench.cluster import GAPS, ROWS, longest_gap
from bench.figures import FIGURES, ONE_SECOND, Bound, lower
from bench.report import Report

RESULTS = Path(__file__).parents[1] / "results"


def test_a_gap_is_the_time_between_two_answers_or_up_to_the_first() -> None:
    assert longest_gap([1.5, 2.0, 4.5, 5.0], since=1.0) == 2.5
    assert longest_gap([3.0, 3.5], since=1.0) == 2.0
    assert longest_gap([], since=1.0) == 0.0


def test_a_bound_may_be_a_value_that_needs_no_other_broker() -> None:
    figure = lower("gap.seconds", "a gap", "s", None, ONE_SECOND)
    assert str(figure.aim) == "1"
    assert figure.meets(figure.aim, {"ours": {"gap.seconds": 0.9}}) is True
    assert figure.meets(figure.aim, {"ours": {"gap.seconds": 1.1}}) is False
    assert figure.meets(figure.aim, {"apache": {"gap.seconds": 0.1}}) is None


def test_every_row_has_its_figures() -> None:
    named = {figure.key.partition(".")[0] for figure in FIGURES}
    assert named >= ROWS.keys() | first_records.ROWS.keys()


def test_a_node_leads_a_third_of_many_topics() -> None:
    leaders = first_records.leaders_of(2, 0, first_records.OF_MANY_TOPICS)
    assert {len(each) for each in leaders.values()} == {4}
    assert Counter(node for each in leaders.values() for node in each) == {2: 130, 1: 135, 3: 135}


def test_gaps_are_at_most_half_of_apache_kafkas_and_aim_at_less_than_a_second() -> None:
    rows = {*GAPS, "client"}
    gaps = [figure for figure in FIGURES if figure.key.partition(".")[0].removeprefix("cluster_") in rows]
    assert {figure.floor for figure in gaps} == {Bound(0.5)}
    assert {figure.key for figure in gaps if figure.aim != ONE_SECOND} == {"cluster_client.kill_s"}
    stored = json.loads(max(RESULTS.glob("*-cluster.json")).read_text())
    assert [figure.key for figure in gaps if figure.meets(figure.floor, stored["values"]) is False] == []


def test_a_result_is_stored_with_the_floors_that_it_misses(tmp_path: Path) -> None:
    report = Report({}, "bare sockets", {})
    report.values = {
        "apache": {"cluster_first.death_s": 12.0, "cluster_first.acks_1s": 20, "cluster_move.seconds": 0.27},
        "ours": {"cluster_first.death_s": 1.5, "cluster_first.acks_1s": 10, "cluster_move.seconds": 0.2},
    }
    stored = json.loads(report.save(tmp_path / "result.json").read_text())
    assert stored["missed"] == {"cluster_first.acks_1s": ">= 1x", "cluster_move.seconds": "<= 0.5x"}


def test_stored_results_miss_the_floors_that_there_are_now() -> None:
    stored = [json.loads(file.read_text()) for file in RESULTS.glob("*.json")]
    told = [(result.pop("missed"), Report(**result)) for result in stored if "missed" in result]
    assert [missed for missed, _ in told] == [report.missed for _, report in told] != []


@pytest.mark.slow
@pytest.mark.parametrize("row", ["cluster_produce", "cluster_again_at_once"])
def test_a_row_has_the_figures_of_the_table(row: str) -> None:
    named = {figure.key.partition(".")[2] for figure in FIGURES if figure.key.startswith(f"{row}.")}
    measured = (ROWS | first_records.ROWS)[row]("ours", 0.01)
    assert measured.keys() == named
    assert all(value > 0 for value in measured.values())


@pytest.mark.slow
def test_the_leaders_kill_is_over_long_before_its_session() -> None:
    """By default nine seconds."""
    assert ROWS["cluster_leader"]("ours", 0.01)["seconds"] < 5
