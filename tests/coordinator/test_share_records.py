"""The share coordinator beside Apache Kafka 4.3.1: its answers, and its records byte for byte.

`golden/share-coordinator.txt` holds what Apache's `ShareCoordinatorShard` answered to lines of random
requests, with the records that it wrote (`tests/support/shares.py` has the language),
`golden/share-state-batches.txt` which batches its `PersisterStateBatchCombiner` made of a start offset, known
batches and new ones. Both were written with `ShareOracle.java`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.coordinator.share.core.batches import StateBatch, combined
from pykafka_broker.coordinator.share.core.loading import Loader
from pykafka_broker.coordinator.share.core.records import (
    Record,
    Snapshot,
    Update,
    decode_record,
    encode_record,
    replay,
)
from pykafka_broker.coordinator.share.core.state import Shares, ShareState
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from tests.support.shares import ShareWorld, batches, play

GOLDEN = Path(__file__).parent / "golden"
KEY = SharePartitionKey("g", b"\x11" * 16, 7)
BATCH = StateBatch(3, 5, 1, 2)
STATE = ShareState(2, 4, 6, 3, 9, (BATCH,), 1_000, 2_000)
UPDATE = Update(KEY, 2, 6, -1, 9, (BATCH,))


def asked_and_answered(name: str) -> list[tuple[str, str]]:
    lines = (GOLDEN / name).read_text().splitlines()
    return [(line[2:], answer[2:]) for line, answer in zip(lines[::2], lines[1::2], strict=True)]


def test_answers_and_records_are_those_of_apache() -> None:
    world = ShareWorld()
    for line, apaches in asked_and_answered("share-coordinator.txt"):
        world, answer = play(world, line)
        assert answer == apaches, line


def test_batches_are_combined_as_apache_combines_them() -> None:
    for line, apaches in asked_and_answered("share-state-batches.txt"):
        start_offset, known, new = line.split(" ")
        made = combined(batches(known), batches(new), int(start_offset))
        assert ";".join(["-", *(",".join(map(str, batch)) for batch in made)]) == apaches, line


@pytest.mark.parametrize("record", [Snapshot(KEY, STATE), Snapshot(KEY, None), UPDATE])
def test_a_record_reads_back_as_what_was_written(record: Record) -> None:
    assert decode_record(*encode_record(record)) == record


def test_what_was_written_before_deliveries_were_counted_is_read() -> None:
    key, value = encode_record(Snapshot(KEY, STATE._replace(delivery_complete_count=-1)))
    assert value is not None
    assert value.endswith(b"\0"), "no tagged field"
    read = decode_record(key, value)
    assert isinstance(read, Snapshot)
    assert read.state is not None
    assert read.state.delivery_complete_count == -1


def test_what_a_newer_broker_left_is_skipped() -> None:
    snapshot_key, _ = encode_record(Snapshot(KEY, None))
    update_key, _ = encode_record(UPDATE)
    assert decode_record(b"\0\x07", b"\0\0") is None
    assert decode_record(snapshot_key, b"\0\x09anything") is None
    assert decode_record(update_key, b"\0\x09anything") is None


def test_an_update_without_a_value_says_nothing() -> None:
    update_key, _ = encode_record(UPDATE)
    assert decode_record(update_key, None) is None


@pytest.mark.parametrize("record", [Snapshot(KEY, STATE), UPDATE])
def test_a_value_that_is_cut_is_not_believed(record: Record) -> None:
    key, value = encode_record(record)
    assert value is not None
    with pytest.raises(ProtocolError):
        decode_record(key, value[:-3])


def test_the_loader_reads_what_was_written_and_where() -> None:
    other = SharePartitionKey("h", b"\x22" * 16, 0)
    gone = SharePartitionKey("gone", b"\x22" * 16, 0)
    written: list[tuple[int, Record]] = [
        (5, Snapshot(KEY, STATE)),
        (6, UPDATE),
        (7, Snapshot(gone, STATE)),
        (9, Snapshot(other, STATE)),
        (10, Snapshot(gone, None)),
        (11, Update(other, 2, 8, 4, 1, ())),
    ]
    loader = Loader(updates_per_snapshot=3)
    for offset, record in written:
        batch = build_batch([(0, *encode_record(record), ())], BatchFields(base_offset=offset))
        assert loader.add(batch) == 1
    assert not loader.digest(4)
    assert loader.digest(4)

    state = loader.state()
    assert state == replay(written, 3)
    assert {key: entry.snapshot_offset for key, entry in state.by_key.items()} == {KEY: 5, other: 9}
    assert state.by_key[other].state == STATE._replace(
        leader_epoch=8, start_offset=4, delivery_complete_count=1, batches=(StateBatch(4, 5, 1, 2),)
    )
    assert (state.deletion_offset, loader.end_offset) == (10, 12)


def test_an_update_whose_snapshot_is_gone_counts_by_itself() -> None:
    state = replay([(8, UPDATE)], 3)
    assert state.by_key[KEY].state == ShareState(2, 0, 6, -1, 9, (BATCH,), 0, 0)
    assert state.redundant_offset() is None


def test_an_empty_log_leads_to_nothing() -> None:
    assert Loader(3).state() == replay([], 3) == Shares.empty()
