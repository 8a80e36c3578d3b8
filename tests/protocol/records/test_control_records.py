"""Control records: transaction markers, and the records of the Raft log as Apache Kafka writes them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.messages.records.control import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from pykafka_broker.protocol.records.batch import (
    BatchFields,
    InvalidRecord,
    build_batch,
    check_batch,
    read_records,
)
from pykafka_broker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_marker_batch,
    decode_key,
    decode_marker,
    decode_raft_record,
    encode_key,
    encode_marker,
    encode_raft_record,
)

#: The first batch of __cluster_metadata-0 of an Apache Kafka 4.3.1 formatted with `--standalone`.
FIRST_RAFT_BATCH = bytes.fromhex(
    "0000000000000000000000a200000001029110ae90002000000002000001a1fd6544bb000001a1fd6544bbffffffffffffffff"
    "ffffffffffff000000033a00000008000000022600000000000102000000010002000000010000001e00000208000000050a00"
    "0000010000820100000408000000066e000002000000013949be615835404295c128402e210bd4020b434f4e54524f4c4c4552"
    "0a3132372e302e302e314a95000000000100000000"
)
TIME = 0x01A1FD6544BB
DIRECTORY_ID = bytes.fromhex("3949be615835404295c128402e210bd4")
RAFT_MESSAGES = [
    LeaderChangeMessage(
        version=0,
        leader_id=1,
        voters=[LeaderChangeMessageVoter(voter_id=1)],
        granting_voters=[LeaderChangeMessageVoter(voter_id=1)],
    ),
    KRaftVersionRecord(version=0, kraft_version=1),
    VotersRecord(
        version=0,
        voters=[
            VotersRecordVoter(
                voter_id=1,
                voter_directory_id=DIRECTORY_ID,
                endpoints=[Endpoint(name="CONTROLLER", host="127.0.0.1", port=19093)],
                kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
        ],
    ),
]


def test_the_first_batch_of_apaches_raft_log_is_read() -> None:
    header = check_batch(FIRST_RAFT_BATCH)
    assert header.is_control and not header.is_transactional
    records = list(read_records(FIRST_RAFT_BATCH))
    assert [decode_raft_record(record.key, record.value) for record in records] == RAFT_MESSAGES


def test_the_first_batch_of_apaches_raft_log_is_built_byte_for_byte() -> None:
    records = [(TIME, *encode_raft_record(message), ()) for message in RAFT_MESSAGES]
    assert build_batch(records, BatchFields(leader_epoch=1, control=True)) == FIRST_RAFT_BATCH


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (SnapshotHeaderRecord(version=0, last_contained_log_timestamp=TIME), "0000000001a1fd6544bb00"),
        (SnapshotFooterRecord(version=0), "000000"),
    ],
)
def test_snapshot_ends_are_encoded_as_apache_does(message: object, value: str) -> None:
    key, encoded = encode_raft_record(message)
    assert encoded == bytes.fromhex(value)
    assert decode_raft_record(key, encoded) == message


@pytest.mark.parametrize(
    ("marker", "key", "value"),
    [
        (EndTransactionMarker(commit=False, coordinator_epoch=0), "00000000", "000000000000"),
        (EndTransactionMarker(commit=True, coordinator_epoch=258), "00000001", "000000000102"),
    ],
)
def test_transaction_markers_have_kafkas_bytes(marker: EndTransactionMarker, key: str, value: str) -> None:
    assert encode_marker(marker) == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode_marker(bytes.fromhex(key), bytes.fromhex(value)) == marker


def test_a_marker_batch_is_one_transactional_control_record_without_a_sequence() -> None:
    marker = EndTransactionMarker(commit=True, coordinator_epoch=3)
    batch = build_marker_batch(
        marker, producer_id=7, producer_epoch=2, timestamp_ms=TIME, base_offset=10, leader_epoch=4
    )

    header = check_batch(batch)
    (record,) = read_records(batch)

    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert (header.base_offset, header.partition_leader_epoch, header.records_count) == (10, 4, 1)
    assert (record.offset, record.timestamp) == (10, TIME)
    assert decode_marker(record.key, record.value) == marker


def test_types_of_the_future_and_of_other_kinds_are_passed_over() -> None:
    unknown, leader_change = b"\0\0\0\x63", encode_key(ControlRecordType.LEADER_CHANGE)
    commit, value = encode_marker(EndTransactionMarker(commit=True, coordinator_epoch=1))

    assert decode_key(unknown) is None
    assert decode_marker(unknown, b"") is None
    assert decode_marker(leader_change, b"") is None
    assert decode_raft_record(unknown, b"") is None
    assert decode_raft_record(commit, value) is None


def test_versions_of_the_future_are_read_as_this_one() -> None:
    assert decode_key(b"\0\x05\0\x01 and more") is ControlRecordType.COMMIT
    assert decode_marker(b"\0\x05\0\x01", b"\0\x05\0\0\0\x09 and more") == EndTransactionMarker(True, 9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\x01", bytes(6)),
        (b"\0\0\0\x01", None),
        (b"\0\0\0\x01", bytes(5)),
        (b"\0\0\0\x01", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_markers_are_invalid(key: Any, value: Any) -> None:
    with pytest.raises(InvalidRecord):
        decode_marker(key, value)


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0\x01\xff\xff\xff\xff\x0f"])
def test_malformed_raft_records_are_invalid(value: Any) -> None:
    with pytest.raises(InvalidRecord, match="LeaderChangeMessage"):
        decode_raft_record(encode_key(ControlRecordType.LEADER_CHANGE), value)


def test_only_control_messages_become_control_records() -> None:
    with pytest.raises(TypeError, match="KRaftVersionFeature"):
        encode_raft_record(KRaftVersionFeature(min_supported_version=0, max_supported_version=1))
