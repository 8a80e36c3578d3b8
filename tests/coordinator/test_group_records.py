"""The coordinator's records, byte for byte as Apache Kafka 4.3.1 wrote them, and what they lead to.

`golden/consumer-offsets.hex` is a whole `__consumer_offsets` log. A static member joins, commits by topic
name and by topic id, restarts and is removed. An old client commits with its own retention. A group comes and
goes. A transactional producer commits one transaction and aborts another. A KIP-848 consumer comes and goes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.record import Record, decode_record, encode_record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.messages.records.group import GroupMetadataValue
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches, read_records
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch

APACHE_LOG = bytes.fromhex((Path(__file__).parent / "golden" / "consumer-offsets.hex").read_text())
TOPIC_ID = bytes.fromhex("116f777188d6461a91397061e7a461af")


def apache_records() -> list[tuple[bytes, bytes | None]]:
    return [
        (record.key, record.value)
        for pos, header in iter_batches(APACHE_LOG)
        if not header.is_control
        for record in read_records(APACHE_LOG[pos : pos + header.size_in_bytes])
        if record.key is not None
    ]


def test_every_record_is_written_as_apache_wrote_it() -> None:
    types = set()
    for key, value in apache_records():
        record = decode_record(key, value)
        assert record is not None
        assert encode_record(record) == (key, value)
        types.add(key[1])
    assert types == {1, 2, 3, 5, 6, 7, 8}


def test_records_of_types_that_are_not_known_are_skipped() -> None:
    assert decode_record(b"\0\x7f" + b"\0\1g", b"\0\0" + bytes(13)) is None


def test_apaches_log_leads_to_the_state_apache_had() -> None:
    loader = Loader()
    loader.add(APACHE_LOG)
    state = loader.state()

    assert loader.end_offset == 23
    assert dict(state.groups) == {
        "golden": ClassicGroup(
            "golden",
            Phase.EMPTY,
            generation=2,
            protocol_type="consumer",
            phase_began_ms=1795255467195,
            subscribed_topics=frozenset(),
        ),
        "simple": ClassicGroup("simple"),
        "txn": ClassicGroup("txn"),
        "new": ConsumerGroup.new("new")._replace(
            group_epoch=3, assignment_epoch=2, assignment_timestamp_ms=1795255488361
        ),
    }
    assert state.committed("golden", "e-t1", 0) == CommittedOffset(
        43, commit_timestamp_ms=1795255467181, topic_id=TOPIC_ID
    )
    assert state.committed("simple", "e-t1", 0) == CommittedOffset(
        7, commit_timestamp_ms=1795255467202, expire_timestamp_ms=1795259067202
    )
    # The second transaction, which committed offset 11, was aborted.
    assert state.committed("txn", "e-t1", 0) == CommittedOffset(10, commit_timestamp_ms=1795255488112)


def test_a_member_is_read_back_with_its_name_and_its_assignment() -> None:
    records = [decode_record(key, value) for key, value in apache_records()[:2]]
    group = replay(record for record in records if record is not None).groups["golden"]
    assert isinstance(group, ClassicGroup)
    (member,) = group.members.values()

    assert group.phase is Phase.STABLE
    assert group.subscribed_topics == frozenset({"e-t1"})
    assert (member.group_instance_id, member.client_id, member.client_host) == (
        "pod-1",
        "golden",
        "/127.0.0.1",
    )
    assert group.static_members == {"pod-1": member.member_id}
    assert member.assignment == bytes.fromhex(
        "00000000000100 04652d743100000001 00000000ffffffff".replace(" ", "")
    )


def test_legacy_keys_and_old_value_versions_are_read() -> None:
    key = b"\0\0" + b"\0\1g\0\1t\0\0\0\3"
    oldest = decode_record(key, b"\0\0" + (9).to_bytes(8) + b"\0\1m" + (5).to_bytes(8))
    group = decode_record(
        b"\0\2\0\1g",
        b"\0\0" + b"\0\x08consumer" + b"\0\0\0\7" + b"\0\5range" + b"\0\1a"
        + b"\0\0\0\1" + b"\0\1a\0\1c\0\2/h" + b"\0\0\x27\x10" + b"\0\0\0\0" + b"\0\0\0\1A",
    )  # fmt: skip
    assert oldest is not None
    assert group is not None

    state = replay([oldest, group])

    assert state.committed("g", "t", 3) == CommittedOffset(9, metadata="m", commit_timestamp_ms=5)
    loaded = state.groups["g"]
    assert isinstance(loaded, ClassicGroup)
    assert (loaded.generation, loaded.phase_began_ms, loaded.subscribed_topics) == (7, -1, None)
    # Version 0 knew no rebalance timeout: the session timeout was the one there was.
    assert loaded.members["a"].rebalance_timeout_ms == 10_000


def test_members_of_a_group_without_a_protocol_have_said_nothing() -> None:
    key, value = apache_records()[1]
    record = decode_record(key, value)
    assert isinstance(record, Record) and isinstance(record.value, GroupMetadataValue)
    record.value.protocol = None

    group = replay([record]).groups["golden"]
    assert isinstance(group, ClassicGroup)

    assert [member.metadata(group.protocol_name) for member in group.members.values()] == [b""]
    assert group.subscribed_topics is None


def test_values_of_a_newer_version_are_skipped_and_garbage_is_refused() -> None:
    key, value = apache_records()[2]
    assert value is not None

    assert decode_record(key, b"\0\5" + value[2:]) is None
    with pytest.raises(ProtocolError):
        decode_record(key, value[:10])
    with pytest.raises(ProtocolError):
        decode_record(key[:9], value)


OF_NO_PRODUCER = BatchFields()


def commit(offset: int, fields: BatchFields = OF_NO_PRODUCER) -> bytes:
    key, value = next((key, value) for key, value in apache_records() if value and value[:2] == b"\0\4")
    assert value is not None
    value = value[:2] + offset.to_bytes(8) + value[10:]
    return build_batch([(0, key, value, ())], fields)


def marker(*, committed: bool, base_offset: int) -> bytes:
    return build_marker_batch(
        EndTransactionMarker(committed, 0),
        producer_id=1,
        producer_epoch=0,
        timestamp_ms=0,
        base_offset=base_offset,
    )


def in_transaction(offset: int, base_offset: int) -> bytes:
    return commit(
        offset,
        BatchFields(
            base_offset=base_offset, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
        ),
    )


def committed_offset(*batches: bytes) -> int | None:
    loader = Loader()
    for batch in batches:
        loader.add(batch)
    found = loader.state().committed("golden", "e-t1", 0)
    return found.offset if found else None


def test_offsets_of_a_transaction_count_from_its_commit_on() -> None:
    open_transaction = (commit(1), in_transaction(2, 1))

    assert committed_offset(*open_transaction) == 1
    assert committed_offset(*open_transaction, marker(committed=True, base_offset=2)) == 2
    assert committed_offset(*open_transaction, marker(committed=False, base_offset=2)) == 1


def test_a_commit_made_while_the_transaction_was_open_is_newer_than_it() -> None:
    assert (
        committed_offset(
            in_transaction(2, 0), commit(3, BatchFields(base_offset=1)), marker(committed=True, base_offset=2)
        )
        == 3
    )
