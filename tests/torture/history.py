"""What clients did and saw, and what is wrong with it: a checker in the manner of Jepsen's Kafka test.

Every value is written once, by one producer, as its next number: `<producer>:<number>:<padding>`. Number `n`
goes to partition `n % partitions`. A history is right if no acknowledged record is lost, none is there
twice, every record was sent, each producer's numbers stand in their order without a gap, offsets are dense,
and a record that a consumer once saw at an offset is there at the end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    partition: int
    offset: int


class Value(NamedTuple):
    producer: int
    number: int

    def to_bytes(self, padding: int = 0) -> bytes:
        return b"%d:%d:%s" % (*self, b"x" * padding)

    @classmethod
    def parse(cls, data: bytes | None) -> Value:
        """The value in a record; what no producer wrote, such as a null, is one that was never sent."""
        try:
            producer, number, _ = (data or b"").split(b":", 2)
            return cls(int(producer), int(number))
        except ValueError:
            return cls(-1, 0)


@dataclass
class History:
    """Grows while clients run; `final` is what is read at the end."""

    partitions: int
    #: How many numbers each producer has handed out.
    sent: dict[int, int] = field(default_factory=dict)
    acknowledged: list[tuple[Place, Value]] = field(default_factory=list)
    #: Acknowledged too, but the producer was not told where: the answer was lost, and that of a later batch
    #: implies that this one is in the log.
    acknowledged_somewhere: list[Value] = field(default_factory=list)
    #: Sends that ended with an error, although there was time enough.
    refused: list[str] = field(default_factory=list)
    #: Each consumer's reads in their order.
    polls: dict[str, list[tuple[Place, Value]]] = field(default_factory=lambda: defaultdict(list))
    final: dict[int, list[tuple[int, Value]]] = field(default_factory=dict)
    #: Of one group and partition: what was acknowledged before it was asked, and the answer.
    commits: list[tuple[int, int]] = field(default_factory=list)
    #: What a consumer had seen, and a power cut took.
    unsafe_reads: list[Place] = field(default_factory=list)
    #: What a read from an offset in the middle began with.
    seeks: list[tuple[Place, int]] = field(default_factory=list)

    def acknowledge(self, partition: int, offset: int | None, value: Value) -> None:
        if offset is None:
            self.acknowledged_somewhere.append(value)
        else:
            self.acknowledged.append((Place(partition, offset), value))

    @property
    def acknowledged_count(self) -> int:
        return len(self.acknowledged) + len(self.acknowledged_somewhere)

    @property
    def acknowledged_values(self) -> list[Value]:
        return [value for _, value in self.acknowledged] + self.acknowledged_somewhere

    @property
    def acknowledged_places(self) -> set[Place]:
        """Once `final` is known, which says where the values are whose places producers were not told."""
        somewhere = set(self.acknowledged_somewhere)
        found = {
            Place(partition, offset)
            for partition, records in self.final.items()
            for offset, value in records
            if value in somewhere
        }
        return found | {place for place, _ in self.acknowledged}


def anomalies(history: History) -> dict[str, list[str]]:
    """Everything that is wrong, by the name of the anomaly."""
    found: dict[str, list[str]] = defaultdict(list)
    final = {
        Place(partition, offset): value
        for partition, records in history.final.items()
        for offset, value in records
    }
    for text in history.refused:
        found["refused"].append(text)
    for place, value in history.acknowledged:
        if final.get(place) != value:
            found["lost"].append(f"{value} acknowledged at {place}, there is {final.get(place)}")
    in_the_log = set(final.values())
    found["lost"] += [
        f"{value} acknowledged, and nowhere in the log"
        for value in history.acknowledged_somewhere
        if value not in in_the_log
    ]
    places: dict[Value, set[Place]] = defaultdict(set)
    for place, value in final.items():
        places[value].add(place)
        if value.number >= history.sent.get(value.producer, 0):
            found["phantom"].append(f"{value} at {place} was never sent")
    found["duplicated"] += [f"{value} at {sorted(at)}" for value, at in places.items() if len(at) > 1]
    for partition, records in history.final.items():
        _check_order(history, partition, records, found)
    for consumer, reads in history.polls.items():
        _check_polls(consumer, reads, final, found)
    at_once: dict[Place, set[Value]] = defaultdict(set)
    for place, value in history.acknowledged:
        at_once[place].add(value)
    for reads in history.polls.values():
        for place, value in reads:
            at_once[place].add(value)
    found["inconsistent offsets"] += [
        f"{place} has held {sorted(values)}" for place, values in at_once.items() if len(values) > 1
    ]
    found["read before it was safe"] += [f"{place}" for place in history.unsafe_reads]
    found["commit went back"] += [f"{was}, then {now}" for was, now in history.commits if now < was]
    found["wrong seek"] += [
        f"a read from {place} began at {first}" for place, first in history.seeks if first != place.offset
    ]
    return {name: texts for name, texts in found.items() if texts}


def _check_order(
    history: History, partition: int, records: list[tuple[int, Value]], found: dict[str, list[str]]
) -> None:
    last: dict[int, int] = {}
    for index, (offset, value) in enumerate(records):
        if index and offset != records[index - 1][0] + 1:
            found["offsets not dense"].append(f"{partition}: {records[index - 1][0]}, then {offset}")
        previous = last.get(value.producer, partition - history.partitions)
        if value.number <= previous:
            found["reordered"].append(f"{partition}: {value} at {offset} after number {previous}")
        elif value.number != previous + history.partitions:
            found["gap"].append(f"{partition}: {value} at {offset} after number {previous}")
        last[value.producer] = max(previous, value.number)


def _check_polls(
    consumer: str, reads: list[tuple[Place, Value]], final: dict[Place, Value], found: dict[str, list[str]]
) -> None:
    positions: dict[int, int] = {}
    for place, value in reads:
        if final.get(place) != value:
            found["vanished"].append(f"{consumer} saw {value} at {place}, there is {final.get(place)}")
        expected = positions.get(place.partition, place.offset)
        if place.offset < expected:
            found["nonmonotonic poll"].append(f"{consumer}: {place} after {expected - 1}")
        elif place.offset > expected:
            found["poll skip"].append(f"{consumer}: {place} after {expected - 1}")
        positions[place.partition] = place.offset + 1
