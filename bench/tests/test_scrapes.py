"""The row of scrapes."""

from __future__ import annotations

import pytest

from bench.figures import FIGURES
from bench.scrapes import ROWS


@pytest.mark.slow
def test_the_row_has_the_figures_of_the_table() -> None:
    named = {figure.key.partition(".")[2] for figure in FIGURES if figure.key.startswith("metrics.")}
    measured = ROWS["metrics"]("ours", 0.02)
    assert measured.keys() == named
    assert all(value > 0 for value in measured.values())
