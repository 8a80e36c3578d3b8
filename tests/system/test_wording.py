"""Numbers and times as sentences have them."""

from __future__ import annotations

import pytest

from pykafka_broker.system.wording import counted, duration


def test_a_number_stands_with_its_noun_in_the_plural_unless_it_is_one() -> None:
    assert counted(1, "record") == "1 record"
    assert counted(0, "record") == "0 records"
    assert counted(12_345, "batch", "batches") == "12,345 batches"


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_500, "1.5 s"),
        (60_000, "1 min"),
        (90 * 3_600_000, "3.8 d"),
    ],
)
def test_durations_are_for_people(ms: int, said: str) -> None:
    assert duration(ms) == said
