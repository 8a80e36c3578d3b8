"""The options of `format("kafka_log")`, checked. Pure.

The names are those of Spark's own Kafka source where there is one, and mean the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import KAFKA_TYPES, TOPIC_ID
from pykafka_broker.system.named_tuple import NamedTuple

#: The numbers that stand for the beginning and the end of a partition among offsets.
EARLIEST, LATEST = -2, -1
PLACES = {"earliest": EARLIEST, "latest": LATEST}

#: Column -> type, of all that can be asked for.
COLUMN_TYPES = {
    **KAFKA_TYPES,
    "producerId": "BIGINT",
    "producerEpoch": "SMALLINT",
    "leaderEpoch": "INT",
    TOPIC_ID: "STRING",
}

#: The options for batches only, and those for streams only.
_OF_BATCHES = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_OF_STREAMS = ("maxOffsetsPerTrigger",)
_TOPICS = ("subscribe", "subscribePattern", "assign")
_OTHERS = (
    "path",
    "paths",
    "columns",
    "kafka.isolation.level",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "maxPartitionBytes",
    "failOnDataLoss",
)
OPTIONS = (*_TOPICS, *_OTHERS, *_OF_BATCHES, *_OF_STREAMS)

DEFAULT_PARTITION_BYTES = 128 << 20
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


class Places(NamedTuple):
    """The start or the end of a read: an offset (also EARLIEST and LATEST) or a time in milliseconds, for all
    partitions or for each.
    """

    is_time: bool
    everywhere: int | None
    by_partition: Mapping[TopicPartition, int]


EVERYTHING_UP_TO = {place: Places(False, place, {}) for place in (EARLIEST, LATEST)}


class Topics(NamedTuple):
    """The partitions to read; all None: those of the one folder that is named."""

    names: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class LogOptions:
    """All options, with their defaults; None where a batch and a stream have different ones."""

    paths: tuple[str, ...]
    topics: Topics
    columns: tuple[str, ...] = tuple(KAFKA_TYPES)
    is_committed_only: bool = False
    start: Places | None = None
    #: Whether a read may start at the end, if its start time is after the last record.
    may_start_at_end: bool = False
    end: Places = EVERYTHING_UP_TO[LATEST]
    least_splits: int = 1
    split_bytes: int = DEFAULT_PARTITION_BYTES
    most_offsets: int | None = None
    fail_on_data_loss: bool = True


def parse(options: Mapping[str, str]) -> LogOptions:
    """The options that were given; names in any case.

    Raises:
        SparkError: one is not known, missing or cannot be understood.
    """
    known = {name.lower(): name for name in OPTIONS}
    given = {}
    for name, value in options.items():
        if name.lower() not in known:
            raise SparkError(f"kafka_log has no option '{name}'. {_hint(name.lower(), known)}")
        given[known[name.lower()]] = value
    start = _places(given, "starting")
    return LogOptions(
        paths=_paths(given),
        topics=_topics(given),
        columns=_columns(given["columns"]) if "columns" in given else tuple(KAFKA_TYPES),
        is_committed_only=_one_of(
            given, "kafka.isolation.level", {"read_uncommitted": False, "read_committed": True}, False
        ),
        start=start,
        may_start_at_end=_one_of(
            given, "startingOffsetsByTimestampStrategy", {"error": False, "latest": True}, False
        ),
        end=_places(given, "ending") or EVERYTHING_UP_TO[LATEST],
        least_splits=_count(given, "minPartitions") or 1,
        split_bytes=_bytes(given, "maxPartitionBytes") or DEFAULT_PARTITION_BYTES,
        most_offsets=_count(given, "maxOffsetsPerTrigger"),
        fail_on_data_loss=_one_of(given, "failOnDataLoss", {"true": True, "false": False}, True),
    )


def insist_on_batch(options: Mapping[str, str]) -> None:
    """
    Raises:
        SparkError: an option is for streams.
    """
    _refuse(options, _OF_STREAMS, "is for streams; a batch has minPartitions and maxPartitionBytes")


def insist_on_stream(options: Mapping[str, str]) -> None:
    """
    Raises:
        SparkError: an option is for batches.
    """
    _refuse(options, _OF_BATCHES, "is for batches; a stream has no end")


def _refuse(options: Mapping[str, str], names: Collection[str], why: str) -> None:
    given = {name.lower() for name in options}
    for name in names:
        if name.lower() in given:
            raise SparkError(f"{name} {why}.")


def _hint(name: str, known: Mapping[str, str]) -> str:
    if name.startswith("kafka."):
        return "It reads folders and asks no broker; of Kafka's options it knows kafka.isolation.level."
    close = get_close_matches(name, known, 1)
    return f"Did you mean {known[close[0]]}?" if close else f"It has {', '.join(OPTIONS)}."


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    paths = _json(given, "paths", "a list of folders") if "paths" in given else [given.get("path")]
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths) or not paths:
        raise SparkError(
            'kafka_log needs a folder: load("DIR") with a log directory, or with the folder of a partition.'
        )
    return tuple(map(_local, paths))


def _local(path: str) -> str:
    scheme = re.match(r"([a-z][a-z0-9+.-]*):(//)?", path)
    if scheme is None:
        return path
    if scheme[1] != "file":
        raise SparkError(
            f"kafka_log reads folders that every executor sees as a path, and {path} is none: mount it."
        )
    return re.sub(r"^file:(//)?", "", path)


def _topics(given: Mapping[str, str]) -> Topics:
    named = [name for name in _TOPICS if name in given]
    if len(named) > 1:
        raise SparkError(f"{named[0]} and {named[1]} exclude each other.")
    if "subscribe" in given:
        names = tuple(name.strip() for name in given["subscribe"].split(",") if name.strip())
        if not names:
            raise SparkError("subscribe names no topic.")
        return Topics(names=names)
    if "subscribePattern" in given:
        try:
            re.compile(given["subscribePattern"])
        except re.error as error:
            raise SparkError(f"subscribePattern is no regular expression: {error}.") from None
        return Topics(pattern=given["subscribePattern"])
    if "assign" in given:
        wanted = 'assign needs partitions by topic, such as {"orders": [0, 1]}'
        value = _json(given, "assign", "partitions by topic")
        if not isinstance(value, dict) or not value:
            raise SparkError(f"{wanted}.")
        partitions = []
        for topic, numbers in value.items():
            if not isinstance(numbers, list) or not all(_is_count(number) for number in numbers):
                raise SparkError(f"{wanted}.")
            partitions += [TopicPartition(topic, number) for number in numbers]
        return Topics(partitions=tuple(sorted(set(partitions))))
    return Topics()


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    insist_on_columns(names)
    return names


def insist_on_columns(names: Collection[str]) -> None:
    """
    Raises:
        SparkError: one of these columns does not exist, is there twice, or there is none.
    """
    for name in names:
        if name not in COLUMN_TYPES:
            raise SparkError(f"kafka_log has no column '{name}': it has {', '.join(COLUMN_TYPES)}.")
    if len(set(names)) < len(names) or not names:
        raise SparkError("columns needs each column once, and at least one.")


def _places(given: Mapping[str, str], side: Literal["starting", "ending"]) -> Places | None:
    """The places of one side; a time for all wins over times of partitions, and those over offsets."""
    if f"{side}Timestamp" in given:
        return Places(True, _milliseconds(given, f"{side}Timestamp"), {})
    if f"{side}OffsetsByTimestamp" in given:
        name = f"{side}OffsetsByTimestamp"
        return Places(True, None, _by_partition(given, name, least=0))
    name = f"{side}Offsets"
    text = given.get(name)
    if text is None:
        return None
    if text.lower() in PLACES:
        place = PLACES[text.lower()]
        if side == "ending" and place == EARLIEST:
            raise SparkError("endingOffsets cannot be earliest: there is nothing before it.")
        return EVERYTHING_UP_TO[place]
    return Places(False, None, _by_partition(given, name, least=EARLIEST))


def _milliseconds(given: Mapping[str, str], name: str) -> int:
    if not given[name].strip().isdecimal():
        raise SparkError(f"{name} needs milliseconds since 1970, and {given[name]!r} is no such number.")
    return int(given[name])


def _by_partition(given: Mapping[str, str], name: str, *, least: int) -> dict[TopicPartition, int]:
    wanted = f'{name} needs numbers by topic and partition, such as {{"orders": {{"0": 23}}}}'
    value = _json(given, name, "numbers by topic and partition")
    found: dict[TopicPartition, int] = {}
    if not isinstance(value, dict) or not value:
        raise SparkError(f"{wanted}.")
    for topic, numbers in value.items():
        if not isinstance(numbers, dict):
            raise SparkError(f"{wanted}.")
        for partition, number in numbers.items():
            if not partition.isdecimal() or not isinstance(number, int) or number < least:
                raise SparkError(f"{wanted}.")
            found[TopicPartition(topic, int(partition))] = number
    return found


def _json(given: Mapping[str, str], name: str, what: str) -> Any:
    try:
        return json.loads(given[name])
    except ValueError:
        raise SparkError(f"{name} needs {what} as JSON, and {given[name]!r} is none.") from None


_Value = TypeVar("_Value")


def _one_of(given: Mapping[str, str], name: str, values: Mapping[str, _Value], default: _Value) -> _Value:
    if name not in given:
        return default
    if given[name].lower() not in values:
        raise SparkError(f"{name} is {' or '.join(values)}, not {given[name]!r}.")
    return values[given[name].lower()]


def _count(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    if not given[name].strip().isdecimal() or not int(given[name]):
        raise SparkError(f"{name} needs a number above 0, not {given[name]!r}.")
    return int(given[name])


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*([kmg]?)b?\s*", given[name].lower())
    if match is None or not int(match[1]):
        raise SparkError(f"{name} needs a number of bytes above 0, such as 64m, not {given[name]!r}.")
    return int(match[1]) << _UNITS[match[2]]


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
