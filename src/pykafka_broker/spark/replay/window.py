"""The choice of records to replay. Pure: conditions are SQL, which every Spark takes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Iterable, Sequence

from pykafka_broker.spark.kafka_format import DAY, OFFSET, PARTITION, TIMESTAMP, TOPIC, TOPIC_ID
from pykafka_broker.system.named_tuple import NamedTuple


class OffsetRange(NamedTuple):
    """Offsets of one partition, from `first` to before `end`; None: without that bound."""

    topic: str
    partition: int
    first: int | None = None
    end: int | None = None


class Window(NamedTuple):
    """The choice of records; a field with its default bounds nothing."""

    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    #: Topic ids, as Kafka's tools print them, to choose one of the topics that had the same name.
    topic_ids: Sequence[str] = ()
    #: Partitions that are not named are left out.
    offsets: Sequence[OffsetRange] = ()
    #: Records with timestamps from `since` to before `until`.
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    #: From the first to the last: the days of an archive, else the UTC days of the timestamps.
    first_day: dt.date | None = None
    last_day: dt.date | None = None


EVERYTHING = Window()


def conditions(window: Window, columns: Collection[str]) -> list[str]:
    """The window as SQL conditions; its records fulfil all of them.

    Raises:
        ValueError: a time has no time zone, or a condition needs a column that is not there.
    """
    found = []
    if window.topics:
        found.append(f"{TOPIC} IN ({_texts(window.topics)})")
    if window.partitions:
        found.append(f"{PARTITION} IN ({', '.join(str(int(p)) for p in window.partitions)})")
    if window.topic_ids:
        if TOPIC_ID not in columns:
            raise ValueError("the source has no column topic_id")
        found.append(f"{TOPIC_ID} IN ({_texts(window.topic_ids)})")
    if window.offsets:
        found.append(" OR ".join(f"({_range(one)})" for one in window.offsets))
    if window.since is not None:
        found.append(f"{TIMESTAMP} >= timestamp_millis({_milliseconds(window.since)})")
    if window.until is not None:
        found.append(f"{TIMESTAMP} < timestamp_millis({_milliseconds(window.until)})")
    day = DAY if DAY in columns else _UTC_DAY
    if window.first_day is not None:
        found.append(f"{day} >= DATE'{window.first_day.isoformat()}'")
    if window.last_day is not None:
        found.append(f"{day} <= DATE'{window.last_day.isoformat()}'")
    return found


#: The UTC day of the timestamp, whatever the time zone of the session.
_UTC_DAY = f"date_from_unix_date(CAST(floor(unix_millis({TIMESTAMP}) / 86400000) AS INT))"


def bounds_of(window: Window, topic: str, partition: int) -> str:
    """The bounds of one partition's records, the same text for the same bounds; "" if there are none."""
    bounds: dict[str, object] = {}
    ranges = [
        [one.first, one.end] for one in window.offsets if (one.topic, one.partition) == (topic, partition)
    ]
    if ranges:
        bounds["offsets"] = ranges
    for name, moment in (("since", window.since), ("until", window.until)):
        if moment is not None:
            bounds[name] = _milliseconds(moment)
    for name, day in (("first_day", window.first_day), ("last_day", window.last_day)):
        if day is not None:
            bounds[name] = day.isoformat()
    return json.dumps(bounds, separators=(",", ":")) if bounds else ""


def _range(one: OffsetRange) -> str:
    parts = [f"{TOPIC} = {_text(one.topic)}", f"{PARTITION} = {one.partition}"]
    if one.first is not None:
        parts.append(f"{OFFSET} >= {one.first}")
    if one.end is not None:
        parts.append(f"{OFFSET} < {one.end}")
    return " AND ".join(parts)


def _texts(texts: Iterable[str]) -> str:
    return ", ".join(map(_text, texts))


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _milliseconds(moment: dt.datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
