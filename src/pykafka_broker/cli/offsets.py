"""Offsets by time and by place, as several commands need them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.metadata import topic_error
from pykafka_broker.client.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

#: Times that stand for places.
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
#: The last offset and the last time there can be.
LONG_MAX = (1 << 63) - 1

TopicPartition = tuple[str, int]


def list_offsets(
    client: Client, times: Mapping[TopicPartition, int], *, missing_ok: bool = False, isolation_level: int = 0
) -> dict[TopicPartition, int]:
    """The first offset at or after each time, -1 where there is none.

    Raises:
        KafkaError: a partition does not exist (unless `missing_ok`), or cannot be read now.
    """
    for is_last in client.attempts():
        found, failed = _list_offsets(client, times, isolation_level)
        for partition, code in failed.items():
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and missing_ok:
                continue
            if is_last or code not in RETRIABLE:
                raise topic_error(code, f"{partition[0]}-{partition[1]}")
            break
        else:
            return found
    raise AssertionError("attempts end with a last one")


def _list_offsets(
    client: Client, times: Mapping[TopicPartition, int], isolation_level: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    from pykafka_broker.protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    found: dict[TopicPartition, int] = {}
    failed: dict[TopicPartition, int] = {}
    by_leader: dict[int, dict[str, list[Any]]] = {}
    for topic in {topic for topic, _ in times}:
        try:
            leaders = client.leaders(topic)
        except KafkaError as error:
            failed.update({p: int(error.code) for p in times if p[0] == topic})
            continue
        for partition in (p for t, p in times if t == topic):
            if partition not in leaders:
                failed[topic, partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            entry = ListOffsetsPartition(partition_index=partition, timestamp=times[topic, partition])
            by_leader.setdefault(leaders[partition], {}).setdefault(topic, []).append(entry)
    for leader, topics in by_leader.items():
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )
        for topic_answer in client.send(request, leader).topics:
            for answer in topic_answer.partitions:
                key = (topic_answer.name, answer.partition_index)
                if answer.error_code:
                    failed[key] = answer.error_code
                else:
                    found[key] = answer.offset
    return found, failed


def parse_number(text: str) -> int:
    """An offset, or a time in milliseconds, of decimal digits.

    Raises:
        click.BadParameter: it is larger than offsets and times can be.
    """
    if len(text.lstrip("0")) > len(str(LONG_MAX)) or int(text) > LONG_MAX:
        raise click.BadParameter(f"{text} is larger than {LONG_MAX}")
    return int(text)


def parse_time_ms(text: str) -> int:
    """A time in milliseconds: a number as it is, else ISO 8601, in local time unless it says otherwise.

    Raises:
        click.BadParameter: it is neither, or no time that a record can have.
    """
    from datetime import datetime

    if text.isdecimal():
        return parse_number(text)
    try:
        time_ms = round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is no time; write 2026-01-31T12:00:00 or milliseconds") from None
    if time_ms < 0:
        # Kafka has other uses for numbers below zero.
        raise click.BadParameter(f"{text!r} is before 1970")
    return time_ms


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration like P1DT2H or PT15M in milliseconds.

    Raises:
        click.BadParameter: it is none, or longer than times can be.
    """
    pattern = r"P(?=.)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
    match = re.fullmatch(pattern, text, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"{text!r} is no duration; write P1DT2H30M or the like")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    duration_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    if duration_ms > LONG_MAX:
        raise click.BadParameter(f"{text!r} is longer than {LONG_MAX} milliseconds")
    return round(duration_ms)
