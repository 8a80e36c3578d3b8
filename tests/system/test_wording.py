"""Numbers as sentences have them."""

from __future__ import annotations

from pykafka_broker.system.wording import counted


def test_a_number_stands_with_its_noun_in_the_plural_unless_it_is_one() -> None:
    assert counted(1, "record") == "1 record"
    assert counted(0, "record") == "0 records"
    assert counted(12_345, "batch", "batches") == "12,345 batches"
