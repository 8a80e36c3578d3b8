"""Golden frames: what Apache Kafka 4.3.1 sent, and the requests it answered that way, byte for byte.

`wire/<api>.txt` holds one exchange per version, header and body in hex; `python -m interop.frames` captures
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import request_type
from tests.support.frames import API_KEYS, Frame, frames_of

FRAMES = [
    frame for path in sorted((Path(__file__).parent / "wire").glob("*.txt")) for frame in frames_of(path)
]


def answer(api: str, version: int) -> Any:
    (frame,) = [f for f in FRAMES if (f.api, f.what, f.version) == (api, "response", version)]
    return frame.decoded()[1]


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_captured_frame_decodes_and_encodes_to_the_same_bytes(frame: Frame) -> None:
    _, header_version, _ = frame.codec()
    header, body = frame.decoded()

    assert encode(header, header_version) + encode(body, frame.version) == frame.data


def test_no_api_and_no_version_that_apache_kafka_serves_is_missing() -> None:
    served = {(api, v) for api, key in API_KEYS.items() for v in schema_of(request_type(key)).served_versions}

    assert len(API_KEYS) == 89
    for what in ("request", "response"):
        assert {(frame.api, frame.version) for frame in FRAMES if frame.what == what} == served


def test_requests_carry_their_key_version_and_client() -> None:
    for frame in FRAMES:
        if frame.what == "request":
            header, _ = frame.decoded()
            assert header.request_api_key == API_KEYS[frame.api]
            assert header.request_api_version == frame.version
            assert header.client_id == "golden"


def test_api_versions_shows_the_features_and_the_oldest_produce() -> None:
    """Produce is listed from v0 for old librdkafka; a feature whose minimum is 0 is not shown before v4."""
    older, newer = answer("api_versions", 3), answer("api_versions", 4)

    assert (newer.api_keys[0].api_key, newer.api_keys[0].min_version) == (0, 0)
    assert [feature.name for feature in older.supported_features] == ["metadata.version"]
    assert "transaction.version" in [feature.name for feature in newer.supported_features]
    assert {f.name: f.max_version_level for f in newer.finalized_features}["metadata.version"] == 30


def test_metadata_describes_a_topic_and_misses_another() -> None:
    metadata = answer("metadata", 13)
    golden, missing = metadata.topics

    assert (golden.name, golden.error_code, len(golden.partitions)) == ("golden", 0, 2)
    assert any(golden.topic_id)
    assert golden.partitions[0].replica_nodes == golden.partitions[0].isr_nodes == [1]
    assert (missing.name, missing.error_code, missing.partitions) == ("missing", 3, [])
    assert answer("metadata", 0).topics[0].name == "golden"


def test_a_fetch_carries_the_batch_and_an_error_side_by_side() -> None:
    good, beyond = answer("fetch", 18).responses[0].partitions

    assert (good.error_code, good.high_watermark, good.log_start_offset) == (0, 1, 0)
    assert bytes(good.records).endswith(b"\x06key\x0avalue\x02\x0atrace\x021")
    assert (beyond.error_code, beyond.high_watermark, beyond.log_start_offset) == (1, -1, -1)
    assert bytes(beyond.records) == b""


def test_an_offset_is_found_by_its_timestamp() -> None:
    (found,) = answer("list_offsets", 11).topics[0].partitions

    assert (found.timestamp, found.offset, found.leader_epoch) == (1_700_000_000_000, 0, 0)


def test_a_lone_member_leads_its_group() -> None:
    joined = answer("join_group", 9)

    assert (joined.generation_id, joined.protocol_name, joined.leader) == (1, "range", joined.member_id)
    assert [member.member_id for member in joined.members] == [joined.member_id]


def test_committed_offsets_come_back_with_their_metadata_and_missing_ones_as_minus_one() -> None:
    known, missing = answer("offset_fetch", 10).groups
    first, second = known.topics[0].partitions

    assert (first.committed_offset, first.committed_leader_epoch, first.metadata) == (1, 0, "note")
    assert (second.committed_offset, second.committed_leader_epoch, second.metadata) == (-1, -1, "")
    assert (missing.error_code, missing.topics) == (0, [])


def test_a_topic_that_exists_is_named_in_the_error() -> None:
    made, refused = answer("create_topics", 7).topics

    assert (made.error_code, made.error_message, made.num_partitions) == (0, None, 1)
    assert {config.name: config.value for config in made.configs or []}["retention.ms"] == "3600000"
    assert (refused.error_code, refused.error_message) == (36, "Topic 'golden' already exists.")


def test_a_transaction_that_ends_in_version_5_gives_its_producer_the_next_epoch() -> None:
    older, newer = answer("end_txn", 4), answer("end_txn", 5)

    assert (older.error_code, older.producer_id, older.producer_epoch) == (0, -1, -1)
    assert (newer.error_code, newer.producer_id > 0, newer.producer_epoch) == (0, True, 2)


def test_the_first_heartbeat_of_a_lone_consumer_brings_the_whole_assignment() -> None:
    joined = answer("consumer_group_heartbeat", 1)

    assert (joined.error_code, joined.member_epoch) == (0, 2)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]


def test_a_share_fetch_brings_records_and_says_which_were_acquired() -> None:
    (fetched,) = answer("share_fetch", 2).responses[0].partitions

    assert bytes(fetched.records).endswith(b"\x06key\x0avalue\x02\x0atrace\x021")
    assert (fetched.acquired_records[0].first_offset, fetched.acquired_records[0].delivery_count) == (0, 1)


def test_an_acl_is_found_and_a_principal_without_a_type_is_refused() -> None:
    made, refused = answer("create_acls", 3).results
    (resource,) = answer("describe_acls", 3).resources

    assert (made.error_code, refused.error_code) == (0, 42)
    assert (resource.resource_name, resource.acls[0].principal) == ("golden-1", "User:golden")


def test_a_broker_without_log_directories_is_not_registered() -> None:
    assert [answer("broker_registration", version).error_code for version in range(5)] == [119, 119, 0, 0, 0]


def test_a_piece_of_a_snapshot_says_how_large_the_whole_is() -> None:
    (piece,) = answer("fetch_snapshot", 1).topics[0].partitions

    assert (piece.error_code, piece.position, len(piece.unaligned_records)) == (0, 0, 500)
    assert piece.size > 500


def test_an_envelope_carries_the_whole_answer_to_the_request_inside() -> None:
    envelope = answer("envelope", 0)

    assert envelope.error_code == 0
    assert b"Broker ID 77 is not currently registered" in envelope.response_data
