"""The comparison of two data folders can fail: every kind of file is read, and a difference is named."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from interop.disk_diff import Folder, compare, evened, of_topics
from pykafka_broker.log.partition.producers import BatchSummary, ProducerState, snapshot_bytes
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

NOW = 1_700_000_000_000
BATCH = build_batch(
    [(NOW, b"key", b"value", ())], BatchFields(producer_id=7, producer_epoch=0, base_sequence=0)
)
STATE = ProducerState(7, 0, -1, NOW, 3, (BatchSummary(0, 0, 0, NOW),))
FILES = {
    "0.log": BATCH,
    "0.index": struct.pack(">ii", 5, 4000),
    "0.timeindex": struct.pack(">qi", NOW, 5),
    "0.txnindex": struct.pack(">hqqqq", 0, 7, 1, 2, 3),
    "0.snapshot": snapshot_bytes([STATE]),
    "leader-epoch-checkpoint": b"0\n1\n0 0",
}


def rows(folder: Path, name: str, data: bytes) -> list[tuple[Any, ...]]:
    (folder / name).write_bytes(data)
    return Folder(folder).rows(folder / name, stamped=False)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_says_something_else_is_a_difference(tmp_path: Path, name: str) -> None:
    good = FILES[name]
    same, other = rows(tmp_path, name, good), rows(tmp_path, name, good[:-1] + bytes([good[-1] ^ 1]))

    assert same
    assert compare(name, same, same) == []
    assert compare(name, same, other) == [
        f"{name}, row {len(same) - 1}:\n  Apache {same[-1]}\n  ours   {other[-1]}"
    ]
    assert compare(name, same, []) == [f"{name}: Apache has {len(same)} rows, we have 0"]


def test_producer_ids_count_by_their_order_only(tmp_path: Path) -> None:
    other = build_batch(
        [(NOW, b"key", b"value", ())], BatchFields(producer_id=4000, producer_epoch=0, base_sequence=0)
    )

    assert rows(tmp_path, "0.log", BATCH) == rows(tmp_path, "0.log", other)


def test_ids_and_times_are_evened_out_but_not_their_absence() -> None:
    assert evened('{"offset": 5, "commitTimestamp": 1700000000000}') == {
        "offset": 5,
        "commitTimestamp": "commitTimestamp",
    }
    assert evened('{"expireTimestamp": -1}') == {"expireTimestamp": -1}
    assert evened("committed at 1700000000000") == "committed at TIME"


def test_configs_may_come_in_any_order_and_topics_may_not() -> None:
    def record(kind: str, name: str) -> tuple[Any, ...]:
        return ("", {"type": kind, "data": {"name": name}})

    one, two = record("CONFIG_RECORD", "a"), record("CONFIG_RECORD", "b")
    first, second = record("TOPIC_RECORD", "a"), record("TOPIC_RECORD", "b")

    assert of_topics([first, two, one, ("", {"type": "NO_OP_RECORD"})]) == of_topics([first, one, two])
    assert of_topics([first, second]) != of_topics([second, first])
    assert of_topics([one, first]) != of_topics([first, one])
