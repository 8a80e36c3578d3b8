"""Whether topics would take records as they are, and keep them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.fitness import Topic, Unfit, left_over, right_configs, unfit
from pykafka_broker.spark.replay.summary import NO_TIMESTAMP, Summary, one_identity

DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS
SUMMARY = Summary(
    topic="orders",
    partition=1,
    topic_id=None,
    records=10,
    first_offset=0,
    last_offset=9,
    oldest_ms=NOW_MS - 10 * DAY_MS,
    newest_ms=NOW_MS - DAY_MS,
    size_bytes=1_000,
    largest_bytes=200,
    without_key=3,
)
#: What topics of Kafka 4 have.
USUAL = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": "3600000",
    "max.message.bytes": "1048588",
}
KEEPS = USUAL | {"retention.ms": "-1"}


def found(partitions: int = 2, summary: Summary = SUMMARY, **configs: str) -> list[Unfit]:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return unfit(Topic("again", "", partitions, KEEPS | settings), [summary], NOW_MS)


def test_a_topic_that_keeps_what_it_gets_fits() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("configs", "sentence", "value"),
    [
        (
            {"retention_ms": str(7 * DAY_MS)},
            "has retention.ms=604800000, and would delete what is older: the oldest record is of "
            "2024-09-24 00:00:00 UTC.",
            "-1",
        ),
        (
            {"retention_bytes": "999"},
            "has retention.bytes=999, and would delete the beginning of a partition that takes about 1200 "
            "bytes.",
            "-1",
        ),
        (
            {"message_timestamp_type": "LogAppendTime"},
            "has message.timestamp.type=LogAppendTime, and would replace the timestamps by the time of the "
            "replay.",
            "CreateTime",
        ),
        (
            {"message_timestamp_before_max_ms": str(9 * DAY_MS)},
            "has message.timestamp.before.max.ms=777600000, and would refuse a record of 2024-09-24 "
            "00:00:00 UTC.",
            str(2**63 - 1),
        ),
        (
            {"max_message_bytes": "300"},
            "has max.message.bytes=300, and would refuse a record that takes up to 301 bytes.",
            "301",
        ),
        (
            {"cleanup_policy": "compact"},
            "is compacted, and would refuse 3 records without a key.",
            "delete",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_does_not_fit_is_a_sentence_with_the_value_that_would(
    configs: dict[str, Any], sentence: str, value: str
) -> None:
    [one] = found(**configs)
    assert (one.sentence, one.value) == (f"Topic 'again' {sentence}", value)


def test_a_record_of_the_future_is_refused_by_the_usual_limit() -> None:
    future = SUMMARY._replace(newest_ms=NOW_MS + DAY_MS)
    [one] = found(summary=future)
    assert one.what == "message.timestamp.after.max.ms"
    assert found(summary=future, message_timestamp_after_max_ms=str(2 * DAY_MS)) == []


def test_records_without_a_timestamp_are_neither_old_nor_refused() -> None:
    timeless = SUMMARY._replace(oldest_ms=NO_TIMESTAMP, newest_ms=NO_TIMESTAMP)
    assert found(summary=timeless, retention_ms="1", message_timestamp_before_max_ms="1") == []


def test_partitions_keep_their_numbers() -> None:
    [one] = found(partitions=1)
    assert (one.sentence, one.value) == (
        "Topic 'again' has 1 partition, and the records are of 2.",
        "2",
    )
    assert found(partitions=3) == []


def test_compaction_may_be_accepted_where_every_record_has_a_key() -> None:
    with_keys = SUMMARY._replace(without_key=0)
    assert left_over(found(summary=with_keys, cleanup_policy="compact"), ["cleanup.policy"]) == []
    [refused] = left_over(found(cleanup_policy="compact"), ["cleanup.policy"])
    assert not refused.is_acceptable


def test_a_topic_that_is_set_to_delete_has_to_keep_records_too() -> None:
    changes = {one.what: one.value for one in found(cleanup_policy="compact", retention_ms="1")}
    assert changes == {"cleanup.policy": "delete", "retention.ms": "-1"}


def test_a_new_topic_sets_what_the_records_need() -> None:
    wide = SUMMARY._replace(largest_bytes=2_000_000, newest_ms=NOW_MS + DAY_MS)
    configs = right_configs([wide], USUAL, NOW_MS)
    assert configs == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(2**63 - 1),
        "max.message.bytes": "2000101",
    }
    assert unfit(Topic("again", "", 2, USUAL | configs), [wide], NOW_MS) == []


def test_two_topics_of_one_name_are_told_apart() -> None:
    one_identity([SUMMARY, SUMMARY._replace(partition=2)])
    with pytest.raises(ReplayError, match=r"2 topics that were called 'orders' .* ids A, B"):
        one_identity([SUMMARY._replace(topic_id="A"), SUMMARY._replace(topic_id="B")])
