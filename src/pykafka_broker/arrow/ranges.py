"""The ranges of a topic's records to read, and the offsets of places given as times. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Union

from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

#: An offset; a time, which stands for the first record at or after it; or one of Kafka's words.
Place = Union[int, datetime, Literal["earliest", "latest"]]

#: Timestamps that stand for places, as ListOffsets has them.
LATEST, EARLIEST = -1, -2


@dataclass(frozen=True, slots=True)
class Ranges:
    """The records to read: from `start` up to, and without, `end`, each for all partitions or by partition.

    A time stands for the first record of a partition at or after it (milliseconds count; a time without a
    zone is local), and for the end if there is none. As in Kafka, records between two times are those between
    two offsets: if timestamps do not ascend, some may lie outside.
    """

    start: Place | Mapping[int, Place] = "earliest"
    #: None: the end of each partition as it is when reading begins; a reader that follows has none.
    end: Place | Mapping[int, Place] | None = None
    #: None: all of them.
    partitions: Collection[int] | None = None


#: Finds for each partition the first offset at or after a timestamp in milliseconds (-1 if there is none);
#: also EARLIEST and LATEST.
LookUp = Callable[[Mapping[int, int]], Mapping[int, int]]


def chosen_partitions(topic: str, ranges: Ranges, existing: Collection[int]) -> list[int]:
    """The partitions to read, in order.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, one of them does not exist.
    """
    chosen = sorted(set(existing if ranges.partitions is None else ranges.partitions))
    named = [places for places in (ranges.start, ranges.end) if isinstance(places, Mapping)]
    for partition in [*chosen, *(number for places in named for number in places)]:
        if partition not in existing:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic}' has no partition {partition}."
            )
    return chosen


def plan(
    topic: str, ranges: Ranges, partitions: Collection[int], look_up: LookUp, *, follow: bool
) -> dict[int, OffsetRange]:
    """The offsets to read of each partition. An end beyond the log counts as its end, unless the reader
    follows.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE, a partition does not have the offset to begin with.
        ValueError: a value is no place, or a reader that follows is to end at a time.
    """
    lows = look_up(dict.fromkeys(partitions, EARLIEST))
    highs = look_up(dict.fromkeys(partitions, LATEST))
    start_places = _by_partition(ranges.start, "earliest", partitions)
    starts = _offsets(start_places, lows, highs, look_up)
    end_places = _by_partition(ranges.end, None, partitions)
    if follow and not all(place is None or isinstance(place, int) for place in end_places.values()):
        raise ValueError("a reader that follows ends at an offset, or not at all")
    ends = _offsets(end_places, lows, highs, look_up)
    planned = {}
    for partition in partitions:
        start, low, high = starts[partition], lows[partition], highs[partition]
        # A record that a time stands for is there, but may be of an open transaction, or newer than the end.
        if not low <= start <= high and not isinstance(start_places[partition], datetime):
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{topic}-{partition} has no offset {start}: it has those from {low} up to {high}.",
            )
        if follow:
            end = NO_END if end_places[partition] is None else ends[partition]
        else:
            end = min(ends[partition], high)
        planned[partition] = OffsetRange(start, max(start, end))
    return planned


def _by_partition(
    places: Place | Mapping[int, Place] | None, default: Place | None, partitions: Collection[int]
) -> dict[int, Place | None]:
    """The place of each partition; those that a mapping does not name have the default."""
    if isinstance(places, Mapping):
        return {partition: places.get(partition, default) for partition in partitions}
    return dict.fromkeys(partitions, places)


def _offsets(
    places: Mapping[int, Place | None], lows: Mapping[int, int], highs: Mapping[int, int], look_up: LookUp
) -> dict[int, int]:
    """The offset of each place; of None and of a time after the last record, the end of the log."""
    times = {
        partition: _milliseconds(place) for partition, place in places.items() if isinstance(place, datetime)
    }
    found = look_up(times) if times else {}
    offsets = {}
    for partition, place in places.items():
        if isinstance(place, datetime):
            offset = found[partition] if found[partition] >= 0 else highs[partition]
        elif isinstance(place, int) and not isinstance(place, bool) and place >= 0:
            offset = place
        elif place == "earliest":
            offset = lows[partition]
        elif place is None or place == "latest":
            offset = highs[partition]
        else:
            raise ValueError(f"{place!r} is neither an offset nor a time, 'earliest' or 'latest'")
        offsets[partition] = offset
    return offsets


def _milliseconds(time: datetime) -> int:
    """The first millisecond at or after a time."""
    number = -int(-time.timestamp() * 1000 // 1)
    if number < 0:
        raise ValueError(f"{time} is before 1970, and Kafka has no such time")
    return number
