"""The judge of replicas itself: replicas that are the same have no difference, and each other one is told
with its offset and the nodes.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from tests.torture.replicas import compacted_difference, difference


def written(offset: int, *values: bytes, epoch: int = 0) -> bytes:
    fields = BatchFields(base_offset=offset, leader_epoch=epoch)
    return build_batch([(0, None, value, ()) for value in values], fields)


def keyed(offset: int, key: bytes, value: bytes, **transaction: Any) -> bytes:
    fields = BatchFields(base_offset=offset, transactional=bool(transaction), **transaction)
    return build_batch([(0, key, value, ())], fields)


def ended(offset: int, *, commit: bool, producer_id: int) -> bytes:
    marker = EndTransactionMarker(commit, 0)
    return build_marker_batch(
        marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=0, base_offset=offset
    )


FIRST, SECOND = written(0, b"a", b"b"), written(2, b"c", epoch=1)


def test_replicas_are_the_same_whatever_follows_the_high_watermark() -> None:
    logs = {1: FIRST + SECOND + written(3, b"d"), 2: FIRST + SECOND, 3: FIRST + SECOND + written(3, b"e")}
    assert difference(logs, 3) is None


def test_a_replica_that_lacks_a_batch_is_named() -> None:
    told = difference({1: FIRST + SECOND, 2: FIRST, 3: FIRST + SECOND}, 3)
    assert told is not None
    assert told.startswith("differs at offset 2: nodes [1, 3] have (1, 2, b")
    assert told.endswith("nodes [2] have nothing")


def test_the_same_records_in_another_leader_epoch_differ() -> None:
    told = difference({1: FIRST + SECOND, 2: FIRST + written(2, b"c", epoch=2)}, 3)
    assert told is not None and told.startswith("differs at offset 2: nodes [1] have (1, 2, b")


def test_logs_are_compared_from_where_all_of_them_begin() -> None:
    assert difference({1: FIRST + SECOND, 2: SECOND}, 3, start=2) is None


def test_a_replica_that_is_compacted_already_keeps_the_newest_of_each_key() -> None:
    old, new, other = keyed(0, b"k", b"old"), keyed(1, b"k", b"new"), keyed(2, b"l", b"x")
    assert compacted_difference({1: old + new + other, 2: new + other}, 3) is None
    assert compacted_difference({1: old + new + other, 2: old + other}, 3) == (
        "differs at offset 0: nodes [1] have nothing, nodes [2] have (b'k', b'old')"
    )


def test_what_was_aborted_may_be_compacted_away_and_what_was_committed_may_not() -> None:
    kept, written_in = keyed(0, b"k", b"kept"), keyed(1, b"k", b"new", producer_id=7, producer_epoch=0)
    aborted, committed = (ended(2, commit=commit, producer_id=7) for commit in (False, True))
    assert compacted_difference({1: kept + written_in + aborted, 2: kept}, 3) is None
    assert compacted_difference({1: written_in + committed, 2: kept}, 3) == (
        "differs at offset 0: nodes [1] have nothing, nodes [2] have (b'k', b'kept')"
    )
