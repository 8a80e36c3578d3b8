"""The transaction coordinator's records, byte for byte as Apache Kafka 4.3.1's `TransactionLog` has them."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.transactions.core.loading import Loader
from pykafka_broker.coordinator.transactions.core.records import (
    decode_record,
    encode_record,
    metadata_record,
    replay,
    tombstone,
)
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.topic_partition import TopicPartition

KEY = "0000 0008 7061796d656e7473"
T0 = TopicPartition("t", 0)

EMPTY = TransactionMetadata("payments", 1000, 60_000, 1_000_000, 1000, -1, 0)
ONGOING = EMPTY._replace(
    state=TransactionState.ONGOING,
    partitions=frozenset({T0}),
    start_ms=1_000_001,
    last_update_ms=1_000_002,
    client_transaction_version=2,
)
#: The last epoch there is: the producer goes on as 1001.
PREPARED = ONGOING._replace(
    state=TransactionState.PREPARE_COMMIT,
    producer_epoch=32767,
    next_producer_id=1001,
    last_update_ms=1_000_003,
)
COMPLETE = EMPTY._replace(
    state=TransactionState.COMPLETE_COMMIT,
    producer_id=1001,
    start_ms=1_000_001,
    last_update_ms=1_000_004,
    client_transaction_version=2,
)

FLEXIBLE = {
    EMPTY: "000100000000000003e800000000ea60000000000000000f4240ffffffffffffffff01000800000000000003e8",
    ONGOING: (
        "000100000000000003e800000000ea600102027402000000000000000000000f424200000000000f4241"
        "02000800000000000003e802020002"
    ),
    PREPARED: (
        "000100000000000003e87fff0000ea600202027402000000000000000000000f424300000000000f4241"
        "03000800000000000003e8010800000000000003e902020002"
    ),
    COMPLETE: (
        "000100000000000003e900000000ea60040100000000000f424400000000000f424102000800000000000003e802020002"
    ),
}
#: Without room for the other producer ids and the client's version.
RIGID = {
    EMPTY: "000000000000000003e800000000ea6000ffffffff00000000000f4240ffffffffffffffff",
    ONGOING: (
        "000000000000000003e800000000ea600100000001000174000000010000000000000000000f424200000000000f4241"
    ),
    PREPARED: (
        "000000000000000003e87fff0000ea600200000001000174000000010000000000000000000f424300000000000f4241"
    ),
    COMPLETE: "000000000000000003e900000000ea60040000000000000000000f424400000000000f4241",
}
by_state = pytest.mark.parametrize(
    "metadata", [EMPTY, ONGOING, PREPARED, COMPLETE], ids=lambda m: m.state.name
)


@by_state
@pytest.mark.parametrize("level", [1, 2])
def test_records_have_apaches_bytes(metadata: TransactionMetadata, level: int) -> None:
    key, value = encode_record(metadata_record(metadata, level))

    assert (key, value) == (bytes.fromhex(KEY), bytes.fromhex(FLEXIBLE[metadata]))


@by_state
def test_before_the_feature_is_finalised_records_are_the_old_ones(metadata: TransactionMetadata) -> None:
    _, value = encode_record(metadata_record(metadata, 0))

    assert value == bytes.fromhex(RIGID[metadata])


@by_state
def test_a_record_reads_back_as_what_was_written(metadata: TransactionMetadata) -> None:
    record = metadata_record(metadata, 2)

    assert decode_record(*encode_record(record)) == record


def test_a_null_value_forgets_the_id() -> None:
    assert encode_record(tombstone("payments")) == (bytes.fromhex(KEY), None)
    assert decode_record(bytes.fromhex(KEY), None) == tombstone("payments")
    assert replay([metadata_record(EMPTY, 2), tombstone("payments")]) == Transactions.empty()


def test_partitions_are_sorted_into_their_topics() -> None:
    wild = frozenset(TopicPartition(topic, number) for topic in "ba" for number in (2, 0, 1))
    record = metadata_record(ONGOING._replace(partitions=wild), 2)
    _, value = encode_record(record)

    assert value is not None
    assert value.index(b"\x02a") < value.index(b"\x02b")
    assert decode_record(*encode_record(record)) == record


def test_what_a_newer_broker_left_is_skipped() -> None:
    assert decode_record(bytes.fromhex("0007 00"), b"\0\0") is None
    assert decode_record(bytes.fromhex(KEY), b"\0\x09anything") is None


def test_a_value_that_is_cut_is_not_believed() -> None:
    with pytest.raises(ProtocolError):
        decode_record(bytes.fromhex(KEY), bytes.fromhex(FLEXIBLE[ONGOING])[:-3])


def test_the_loader_takes_the_newest_record_of_each_id() -> None:
    written = [metadata_record(m, 2) for m in (EMPTY, ONGOING, PREPARED)]
    other = EMPTY._replace(transactional_id="refunds")
    gone = EMPTY._replace(transactional_id="gone")
    written += [metadata_record(other, 2), metadata_record(gone, 0), tombstone("gone")]

    loader = Loader()
    for at, record in enumerate(written):
        loader.add(build_batch([(0, *encode_record(record), ())], BatchFields(base_offset=at)))

    assert loader.state() == replay(written)
    assert dict(loader.state().by_id) == {"payments": PREPARED, "refunds": other}
    assert loader.end_offset == len(written)
