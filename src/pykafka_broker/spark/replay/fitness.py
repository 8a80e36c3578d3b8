"""Settings of a topic that would delete, change or refuse the records of a replay. Pure.

Each is said in a sentence, with the value that fits: brokers delete records whose timestamps are
older than `retention.ms` within minutes, refuse timestamps far from now, replace them where
`message.timestamp.type` says so, and compact keys away.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

from pykafka_broker.spark.replay.summary import NO_TIMESTAMP, Summary
from pykafka_broker.system.named_tuple import NamedTuple

MAX_INT64 = 2**63 - 1
#: The most bytes of a batch of one record besides key, value and headers.
OVERHEAD_BYTES = 61 + 40
#: A margin for the clocks of brokers, and for the time until a record is written.
MARGIN_MS = 60_000

PARTITIONS = "partitions"
RECORDS = "records"

CLEANUP_POLICY = "cleanup.policy"
RETENTION_MS = "retention.ms"
RETENTION_BYTES = "retention.bytes"
TIMESTAMP_TYPE = "message.timestamp.type"
BEFORE_MAX_MS = "message.timestamp.before.max.ms"
AFTER_MAX_MS = "message.timestamp.after.max.ms"
MAX_MESSAGE_BYTES = "max.message.bytes"

#: The keys that matter.
KEYS = (
    CLEANUP_POLICY,
    RETENTION_MS,
    RETENTION_BYTES,
    TIMESTAMP_TYPE,
    BEFORE_MAX_MS,
    AFTER_MAX_MS,
    MAX_MESSAGE_BYTES,
)


class Topic(NamedTuple):
    """A topic with the values in force."""

    name: str
    #: As Kafka's tools print it; "" from brokers without topic ids.
    topic_id: str
    partitions: int
    configs: Mapping[str, str]


class Unfit(NamedTuple):
    """A property of a topic that would delete, change or refuse records."""

    topic: str
    #: The key of the configuration, or one of `PARTITIONS` and `RECORDS`.
    what: str
    sentence: str
    #: The value that fits; None if there is none.
    value: str | None
    #: Whether a caller may leave it: it deletes or changes records, but refuses none.
    is_acceptable: bool = True


def unfit(topic: Topic, summaries: Sequence[Summary], now_ms: int) -> list[Unfit]:
    """The properties of a topic that do not fit these partitions."""
    found: list[Unfit] = []

    def no(what: str, sentence: str, value: str | None, *, is_acceptable: bool = True) -> None:
        found.append(Unfit(topic.name, what, sentence, value, is_acceptable))

    name, configs = topic.name, topic.configs
    wanted = partitions_of(summaries)
    if topic.partitions < wanted:
        no(
            PARTITIONS,
            f"Topic '{name}' has {_counted(topic.partitions, 'partition')}, and the records are of {wanted}.",
            str(wanted),
            is_acceptable=False,
        )
    policies = {policy.strip() for policy in configs.get(CLEANUP_POLICY, "delete").split(",")}
    if "compact" in policies:
        without_key = sum(summary.without_key for summary in summaries)
        if without_key:
            no(
                CLEANUP_POLICY,
                f"Topic '{name}' is compacted, and would refuse {_counted(without_key, 'record')} without a "
                "key.",
                "delete",
                is_acceptable=False,
            )
        else:
            no(
                CLEANUP_POLICY,
                f"Topic '{name}' is compacted, and would keep only the last record of each key.",
                "delete",
            )
    # A topic that is set to delete instead of compact has to keep the records, too.
    if "delete" in policies or any(one.value == "delete" for one in found):
        found += _retention(topic, summaries, now_ms)
    if configs.get(TIMESTAMP_TYPE, "CreateTime") != "CreateTime":
        no(
            TIMESTAMP_TYPE,
            f"Topic '{name}' has {TIMESTAMP_TYPE}={configs[TIMESTAMP_TYPE]}, and would replace the "
            "timestamps by the time of the replay.",
            "CreateTime",
        )
    found += _timestamp_limits(topic, summaries, now_ms)
    largest = max((summary.largest_bytes for summary in summaries), default=0) + OVERHEAD_BYTES
    limit = int(configs.get(MAX_MESSAGE_BYTES, MAX_INT64))
    if largest > limit:
        no(
            MAX_MESSAGE_BYTES,
            f"Topic '{name}' has {MAX_MESSAGE_BYTES}={limit}, and would refuse a record that takes up to "
            f"{largest} bytes.",
            str(largest),
            is_acceptable=False,
        )
    return found


def _retention(topic: Topic, summaries: Sequence[Summary], now_ms: int) -> list[Unfit]:
    found = []
    retention_ms = int(topic.configs.get(RETENTION_MS, -1))
    oldest_ms = _oldest_ms(summaries)
    if retention_ms >= 0 and oldest_ms != NO_TIMESTAMP and oldest_ms < now_ms + MARGIN_MS - retention_ms:
        found.append(
            Unfit(
                topic.name,
                RETENTION_MS,
                f"Topic '{topic.name}' has {RETENTION_MS}={retention_ms}, and would delete what is older: "
                f"the oldest record is of {_shown(oldest_ms)}.",
                "-1",
            )
        )
    retention_bytes = int(topic.configs.get(RETENTION_BYTES, -1))
    most = max((summary.size_bytes + summary.records * 20 for summary in summaries), default=0)
    if 0 <= retention_bytes < most:
        found.append(
            Unfit(
                topic.name,
                RETENTION_BYTES,
                f"Topic '{topic.name}' has {RETENTION_BYTES}={retention_bytes}, and would delete the "
                f"beginning of a partition that takes about {most} bytes.",
                "-1",
            )
        )
    return found


def _timestamp_limits(topic: Topic, summaries: Sequence[Summary], now_ms: int) -> list[Unfit]:
    found = []
    before_ms = int(topic.configs.get(BEFORE_MAX_MS, MAX_INT64))
    oldest_ms = _oldest_ms(summaries)
    if oldest_ms != NO_TIMESTAMP and now_ms + MARGIN_MS - oldest_ms > before_ms:
        found.append(
            Unfit(
                topic.name,
                BEFORE_MAX_MS,
                f"Topic '{topic.name}' has {BEFORE_MAX_MS}={before_ms}, and would refuse a record of "
                f"{_shown(oldest_ms)}.",
                str(MAX_INT64),
                is_acceptable=False,
            )
        )
    after_ms = int(topic.configs.get(AFTER_MAX_MS, MAX_INT64))
    newest_ms = max((summary.newest_ms for summary in summaries), default=NO_TIMESTAMP)
    if newest_ms - now_ms + MARGIN_MS > after_ms and newest_ms - now_ms > 0:
        found.append(
            Unfit(
                topic.name,
                AFTER_MAX_MS,
                f"Topic '{topic.name}' has {AFTER_MAX_MS}={after_ms}, and would refuse a record of "
                f"{_shown(newest_ms)}.",
                str(MAX_INT64),
                is_acceptable=False,
            )
        )
    return found


def right_configs(summaries: Sequence[Summary], limits: Mapping[str, str], now_ms: int) -> dict[str, str]:
    """The configuration of a new topic that fits; `limits` are the cluster's defaults."""
    wanted = unfit(Topic("", "", MAX_INT64, limits), summaries, now_ms)
    always = {
        RETENTION_MS: "-1",
        RETENTION_BYTES: "-1",
        CLEANUP_POLICY: "delete",
        TIMESTAMP_TYPE: "CreateTime",
    }
    return always | {one.what: one.value for one in wanted if one.value is not None}


def partitions_of(summaries: Sequence[Summary]) -> int:
    """The number of partitions that the records need."""
    return max((summary.partition + 1 for summary in summaries), default=0)


def left_over(found: Sequence[Unfit], accepted: Collection[str]) -> list[Unfit]:
    """The properties that are not accepted, or cannot be."""
    return [one for one in found if not (one.is_acceptable and one.what in accepted)]


def _oldest_ms(summaries: Sequence[Summary]) -> int:
    return min(
        (summary.oldest_ms for summary in summaries if summary.oldest_ms != NO_TIMESTAMP),
        default=NO_TIMESTAMP,
    )


def _shown(moment_ms: int) -> str:
    try:
        return dt.datetime.fromtimestamp(moment_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{moment_ms} ms"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
