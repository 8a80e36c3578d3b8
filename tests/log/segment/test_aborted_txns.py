"""Aborted transactions and their `.txnindex` file."""

from __future__ import annotations

import pytest

from pykafka_broker.log.segment.aborted_txns import AbortedTxn, AbortedTxns, read_aborted_txns
from pykafka_broker.log.segment.index import InvalidIndexError
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.testing.memory_files import MemoryFiles

FIRST, SECOND = AbortedTxn(1, 5, 9, 10), AbortedTxn(2, 6, 12, 13)


def test_an_aborted_transaction_has_the_bytes_that_apache_kafka_wrote() -> None:
    txn = AbortedTxn(producer_id=1, first_offset=0x33, last_offset=0x65, last_stable_offset=0x66)
    data = bytes.fromhex("0000 0000000000000001 0000000000000033 0000000000000065 0000000000000066")
    assert txn.to_bytes() == data
    assert read_aborted_txns(data + data[:20]) == [txn]


def test_what_cannot_be_a_transaction_index_is_refused() -> None:
    txn = AbortedTxn(1, 5, 9, 10)
    for data in (txn.to_bytes() * 2, AbortedTxn(1, 9, 5, 10).to_bytes(), b"\1" + txn.to_bytes()[1:]):
        with pytest.raises(InvalidIndexError):
            read_aborted_txns(data)


def test_an_entry_that_could_not_be_written_is_written_with_the_next() -> None:
    files = MemoryFiles()
    files.make_directory("/logs")
    txns = AbortedTxns(SegmentFiles(files, "/logs/0"))
    files.fail("pwrite", 28)
    with pytest.raises(OSError):
        txns.append(FIRST)

    txns.append(SECOND)

    assert files.read_file("/logs/0.txnindex") == FIRST.to_bytes() + SECOND.to_bytes()


def test_truncation_forgets_transactions_whose_marker_is_gone() -> None:
    files = MemoryFiles()
    files.make_directory("/logs")
    txns = AbortedTxns(SegmentFiles(files, "/logs/0"))
    txns.append(FIRST)
    txns.append(SECOND)

    txns.truncate_to(12)

    assert (txns.entries, files.read_file("/logs/0.txnindex")) == ([FIRST], FIRST.to_bytes())
