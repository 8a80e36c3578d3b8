"""The matrix of clients and its stored result belong together."""

from __future__ import annotations

from pathlib import Path

from interop import spark
from interop.clients import ADAPTERS
from interop.matrix_result import OUTCOMES, STORED_SPARK, MatrixResult, load
from interop.run import load_matrix

CLIENTS, SCENARIOS = load_matrix()


def test_every_client_of_the_matrix_has_an_adapter() -> None:
    assert sorted(CLIENTS) == sorted(ADAPTERS)


def test_only_clients_of_the_matrix_lack_something_and_say_why() -> None:
    for scenario in SCENARIOS:
        assert set(scenario.lacks) <= set(CLIENTS), scenario.name
        assert all(scenario.lacks.values()), scenario.name


def test_the_stored_result_covers_every_scenario_with_every_client() -> None:
    stored = load()
    assert set(stored.versions) == set(CLIENTS)
    assert {row: set(cells) for row, cells in stored.cells.items()} == {
        scenario.name: set(CLIENTS) for scenario in SCENARIOS
    }


def test_a_stored_cell_lacks_what_the_matrix_says_and_otherwise_was_run() -> None:
    stored = load()
    for scenario in SCENARIOS:
        for client in CLIENTS:
            cell = stored.cells[scenario.name][client]
            reason = scenario.lacks.get(client)
            assert (cell == f"lacks: {reason}") == (reason is not None), (scenario.name, client, cell)
            assert cell.partition(":")[0] in OUTCOMES


def test_the_stored_result_of_spark_covers_every_scenario_with_every_release() -> None:
    stored = load(STORED_SPARK)
    assert stored.versions == {release.name: release.told for release in spark.RELEASES}
    assert {row.scenario: len(row.cells) for row in stored.rows()} == dict.fromkeys(
        spark.SCENARIOS, len(spark.RELEASES)
    )


def test_a_result_is_a_table_with_a_numbered_list_of_reasons() -> None:
    result = MatrixResult(
        versions={"one": "1.0", "two": "2.0"},
        cells={
            "data.a_record_is_read": {"one": "pass", "two": "lacks: it only writes"},
            "data.a_record_is_kept": {"one": "fails: it was gone", "two": "lacks: it only writes"},
        },
    )
    assert result.as_markdown() == (
        "| scenario | one 1.0 | two 2.0 |\n"
        "|---|:-:|:-:|\n"
        "| a record is read | ✓ | - [1] |\n"
        "| a record is kept | ✗ [2] | - [1] |\n"
        "\n"
        "1. it only writes\n"
        "2. it was gone\n"
    )


def test_a_result_survives_being_stored(tmp_path: Path) -> None:
    result = MatrixResult(versions={"one": "1.0"}, cells={"data.a_record_is_read": {"one": "pass"}})
    path = tmp_path / "matrix.json"
    path.write_text(result.as_json())
    assert load(path) == result


def test_a_newer_result_replaces_the_cells_of_the_clients_that_ran() -> None:
    older = MatrixResult({"one": "1", "gone": "1"}, {"a.x": {"one": "pass", "gone": "pass"}, "a.y": {}})
    newer = MatrixResult({"two": "2"}, {"a.x": {"two": "fails: it did"}})
    assert older.updated(newer).of(["one", "two"], ["a.x"]) == MatrixResult(
        {"one": "1", "two": "2"}, {"a.x": {"one": "pass", "two": "fails: it did"}}
    )
