"""Framing: bytes of Apache Kafka's own log, the version of each record, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.image import _APPLY, CorruptMetadataError
from pykafka_broker.cluster.records import RECORD_TYPES, decode_record, encode_record, record_version
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import uuid


@pytest.mark.parametrize(
    "record, value",
    [
        (
            m.FeatureLevelRecord(name="metadata.version", feature_level=30),
            b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00",
        ),
        (m.NoOpRecord(), b"\x01\x14\x00\x00"),
        (m.EndTransactionRecord(), b"\x01\x18\x00\x00"),
        (
            m.BeginTransactionRecord(name="Bootstrap records"),
            b"\x01\x17\x00\x01\x00\x12\x12Bootstrap records",
        ),
        (
            m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=14, fenced=-1),
            bytes.fromhex("01 11 00 00000001 000000000000000e 01 00 01 ff"),
        ),
        (
            m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=14, cordoned_log_dirs=[]),
            bytes.fromhex("01 11 03 00000001 000000000000000e 01 03 01 01"),
        ),
    ],
)
def test_records_have_the_bytes_that_kafka_writes(record: object, value: bytes) -> None:
    assert encode_record(record, 30) == value
    assert decode_record(memoryview(value)) == record


def test_every_record_type_can_be_replayed() -> None:
    assert set(RECORD_TYPES) == set(_APPLY)


@pytest.mark.parametrize(
    "record_type, versions",
    [
        (m.RegisterBrokerRecord, {7: 1, 8: 2, 16: 2, 17: 3, 29: 3, 30: 4}),
        (m.PartitionRecord, {7: 0, 16: 0, 17: 1, 22: 1, 23: 2, 30: 2}),
        (m.PartitionChangeRecord, {7: 0, 17: 1, 23: 2}),
        (m.TopicRecord, {7: 0, 30: 0}),
    ],
)
def test_old_clusters_get_records_that_their_nodes_can_read(
    record_type: type, versions: dict[int, int]
) -> None:
    record: object = object.__new__(record_type)
    assert {level: record_version(record, level) for level in versions} == versions


def test_a_broker_change_takes_the_oldest_version_that_can_say_it() -> None:
    def version(**fields: Any) -> int:
        return record_version(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, **fields), 30)

    assert version(fenced=1) == 0
    assert version(in_controlled_shutdown=1) == 1
    assert version(log_dirs=[uuid(500)]) == 2
    assert version(cordoned_log_dirs=[]) == 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x00\x14\x00\x00",  # frame version 0
        b"\x01\x63\x00\x00",  # no such type
        b"\x01\x14\x00\x00\x00",  # a byte too many
        b"\x01\x0c\x00\x11metadata",  # cut
        b"\x01\x0c\x09\x11metadata.version\x00\x1e\x00",  # no such version
        b"\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_what_is_no_record_is_refused(value: bytes | None) -> None:
    with pytest.raises(CorruptMetadataError):
        decode_record(value)
