"""What is appended can be read: a leader refuses every batch at which a consumer would stop."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.validation import Prepared, prepare_client_batch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    NO_TIMESTAMP,
    Codec,
    build_batch,
    check_batch,
    read_records,
)
from pykafka_broker.protocol.records.compression import DEFAULT_LIMIT_BYTES
from tests.support.hostile import (
    BATCH_FIELDS,
    PlainRecord,
    bomb,
    damaged,
    join,
    record_pieces,
    sealed,
    spoilt,
)

NOW = 1_000_000
CASES = int(os.environ.get("FUZZ_CASES", "500"))
CONFIGS = {
    "plain": LogConfig(),
    "log append time": LogConfig(message_timestamp_type="LogAppendTime"),
    "compacted": LogConfig(cleanup_policy=frozenset({"compact"})),
    "recompressed": LogConfig(compression_type="lz4"),
    "any time": LogConfig(message_timestamp_after_max_ms=2**63 - 1),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
each_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)

RECORDS: list[PlainRecord] = [
    (b"key", b"value" * 20, {"trace": b"1", "none": None}),
    (b"key", None, {}),
    *[(b"key", b"same" * 30, {})] * 4,
]
PIECES = record_pieces(RECORDS)


def prepare(batch: bytes, config: LogConfig, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Prepared:
    return prepare_client_batch(
        bytearray(batch),
        topic_partition="t-0",
        first_offset=70,
        leader_epoch=3,
        now_ms=NOW,
        config=config,
        limit_bytes=limit_bytes,
    )


def is_taken(batch: bytes, config: LogConfig) -> bool:
    """Whether it is appended; then a consumer must be able to read it, finds every offset once, and the
    latest timestamp is that of the records.
    """
    try:
        prepared = prepare(batch, config)
    except KafkaError:
        return False
    header = check_batch(prepared.buffer)
    records = list(read_records(prepared.buffer))
    offsets = [record.offset for record in records]
    assert offsets == list(range(70, 70 + header.records_count)), batch.hex()
    assert (prepared.first_offset, prepared.last_offset) == (70, offsets[-1])
    latest = max(NO_TIMESTAMP, *[record.timestamp for record in records])
    assert header.max_timestamp == prepared.max_timestamp == latest, batch.hex()
    return True


def test_the_pieces_are_a_batch_like_any_other() -> None:
    records = [
        (index, key, value, tuple(headers.items())) for index, (key, value, headers) in enumerate(RECORDS)
    ]

    assert sealed(join(PIECES), len(RECORDS)) == build_batch(records)


@each_config
@each_codec
def test_every_hostile_number_inside_the_records_is_refused_or_readable(
    codec: Codec, config: LogConfig
) -> None:
    cases = taken = 0
    for _, section in damaged(PIECES):
        cases += 1
        taken += is_taken(sealed(section, len(RECORDS), codec), config)

    assert is_taken(sealed(join(PIECES), len(RECORDS), codec), config)
    assert cases > 400
    assert taken < cases / 4


@each_config
@pytest.mark.parametrize("field", BATCH_FIELDS)
def test_every_hostile_field_of_the_header_is_refused_or_harmless(field: str, config: LogConfig) -> None:
    bits = {"b": 8, "h": 16, "i": 32, "I": 32, "q": 64}[BATCH_FIELDS[field]]
    low = 0 if BATCH_FIELDS[field] == "I" else -(1 << bits - 1)
    numbers = {low, low + 1, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 99, (1 << bits - 1) - 1}
    for number in numbers:
        if number >= low:
            is_taken(sealed(join(PIECES), len(RECORDS), Codec.NONE, **{field: number}), config)


@each_config
def test_a_batch_cut_at_any_byte_is_refused(config: LogConfig) -> None:
    batch = sealed(join(PIECES), len(RECORDS))
    for length in range(len(batch)):
        assert not is_taken(batch[:length], config)


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    spoilt(PIECES),
    st.sampled_from(list(Codec)),
    st.integers(1, 8),
    st.sampled_from([*CONFIGS.values()]),
)
def test_spoilt_records_are_refused_or_readable(
    section: bytes, codec: Codec, count: int, config: LogConfig
) -> None:
    is_taken(sealed(section, count, codec), config)


@pytest.mark.parametrize("codec", list(Codec)[1:], ids=lambda codec: codec.name)
def test_a_bomb_is_refused_when_it_has_grown_to_the_limit(codec: Codec) -> None:
    config = LogConfig(max_message_bytes=8 << 20)
    batch = bomb(codec, 8 << 20)

    assert len(batch) < 1 << 20
    with pytest.raises(KafkaError) as refused:
        prepare(batch, config, limit_bytes=(8 << 20) - 1)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KafkaError) as refused:
        prepare(batch, config, limit_bytes=8 << 20)
    assert refused.value.code is ErrorCode.INVALID_RECORD
