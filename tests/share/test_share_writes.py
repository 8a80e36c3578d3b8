"""Several writes of one share partition that go together say what they would say one after the other."""

from __future__ import annotations

import random

import pytest

from pykafka_broker.share.core import records
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import Persisted, StateWrite, WrittenBatch, replay
from pykafka_broker.share.writes import together


def write(write_id: int, start_offset: int, *batches: WrittenBatch) -> StateWrite:
    return StateWrite(write_id, 1, start_offset, write_id, batches)


def test_one_write_stays_as_it_is() -> None:
    only = write(3, 5, WrittenBatch(0, 9, Delivery.AVAILABLE, 1))
    assert together([only]) is only


def test_the_last_word_counts_and_what_is_below_the_start_offset_is_left_out() -> None:
    writes = [
        write(1, 0, WrittenBatch(0, 9, Delivery.AVAILABLE, 1)),
        write(2, 0, WrittenBatch(4, 5, Delivery.ACKNOWLEDGED, 2)),
        write(3, 2, WrittenBatch(20, 29, Delivery.ARCHIVED, 1)),
    ]

    assert together(writes) == StateWrite(
        3,
        1,
        2,
        3,
        (
            WrittenBatch(2, 3, Delivery.AVAILABLE, 1),
            WrittenBatch(4, 5, Delivery.ACKNOWLEDGED, 2),
            WrittenBatch(6, 9, Delivery.AVAILABLE, 1),
            WrittenBatch(20, 29, Delivery.ARCHIVED, 1),
        ),
    )


def test_the_coordinator_has_the_same_after_one_request_as_after_many() -> None:
    dice = random.Random(932)
    for _ in range(300):
        before = Persisted(0, (WrittenBatch(0, 30, Delivery.AVAILABLE, 1),))
        start_offset, writes = 0, []
        for write_id in range(dice.randint(1, 5)):
            start_offset += dice.choice([0, 0, 3])
            first = dice.randrange(40)
            batch = WrittenBatch(first, first + dice.randrange(8), dice.choice(list(Delivery)), write_id + 2)
            writes.append(write(write_id, start_offset, batch))
        one_by_one = before
        for each in writes:
            one_by_one = replay(one_by_one, each)

        assert replay(before, together(writes)) == one_by_one


def test_the_work_for_writes_that_go_together_grows_with_their_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It grew with their square: two members that acknowledged 1,000 records each stopped the broker for 2 s.
    calls = 0
    uncovered = records.uncovered

    def counted(old: WrittenBatch, new: WrittenBatch) -> list[WrittenBatch]:
        nonlocal calls
        calls += 1
        return uncovered(old, new)

    def alternating(write_id: int, first_offset: int) -> StateWrite:
        states = (Delivery.AVAILABLE, Delivery.ARCHIVED)
        offsets = range(first_offset, first_offset + 100)
        return write(write_id, 0, *(WrittenBatch(each, each, states[each % 2], 1) for each in offsets))

    monkeypatch.setattr(records, "uncovered", counted)
    assert len(together([alternating(1, 0), alternating(2, 50), alternating(3, 150)]).batches) == 250
    assert calls <= 300
