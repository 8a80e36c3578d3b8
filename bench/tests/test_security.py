"""The rows of a secured node."""

from __future__ import annotations

import pytest

from bench.figures import FIGURES
from bench.security import ROWS


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_figures_of_the_table(row: str) -> None:
    named = {figure.key.partition(".")[2] for figure in FIGURES if figure.key.startswith(f"{row}.")}
    measured = ROWS[row]("ours", 0.03)
    assert measured.keys() == named
    assert all(value > 0 for value in measured.values())
