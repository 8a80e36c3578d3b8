"""The rows of share groups and of streams groups."""

from __future__ import annotations

import pytest

from bench.figures import FIGURES
from bench.shares import ROWS as OF_SHARES
from bench.shares import TOPIC, broker, create, fill, passed
from bench.streams import ROWS as OF_STREAMS

ROWS = {**OF_SHARES, **OF_STREAMS}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_figures_of_the_table(row: str) -> None:
    named = {figure.key.partition(".")[2] for figure in FIGURES if figure.key.startswith(f"{row}.")}
    measured = ROWS[row]("ours", 0.02)
    assert measured.keys() == named
    assert all(value >= 0 for value in measured.values())


@pytest.mark.slow
def test_a_record_that_is_not_delivered_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consumers go on until all that was written is acknowledged."""
    monkeypatch.setattr("bench.shares.PATIENCE_S", 2.0)
    with broker("ours") as running:
        create(running.address, TOPIC, 4)
        written = fill(running.address, TOPIC, 1_000)
        assert passed(running, 2, written, "all").per_s > 0
        with pytest.raises(AssertionError, match="are acknowledged"):
            passed(running, 1, written + 1, "one-too-many")
