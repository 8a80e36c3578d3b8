"""The rows of a secured node."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import FIGURES
from bench.security import ROWS, OnAsyncio, secured
from pykafka_broker.testing.apache.nodes import Node


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_figures_of_the_table(row: str) -> None:
    named = {figure.key.partition(".")[2] for figure in FIGURES if figure.key.startswith(f"{row}.")}
    measured = ROWS[row]("ours", 0.03)
    assert measured.keys() == named
    assert all(value > 0 for value in measured.values())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "has_uvloop"), [(Node, True), (OnAsyncio, False)])
def test_the_rows_of_the_loops_hide_uvloop_from_one_node_and_not_from_the_other(
    kind: type[Node], has_uvloop: bool
) -> None:
    pytest.importorskip("uvloop")
    with secured("ours", kind=kind) as broker:
        assert ("/uvloop/" in Path(f"/proc/{broker.node.pid}/maps").read_text()) is has_uvloop
