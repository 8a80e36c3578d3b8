"""The newest value of each series that clients have pushed, for those who publish it. Bounded.

A push replaces what its instance pushed before, but for counters that are pushed as the change since the last
push: these are added up. An instance that ends, or is silent for three intervals, is forgotten. Of a push as
many values are read as there is room for; the rest, and values with long texts, are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.telemetry.instance import SILENT_INTERVALS

#: The most series of all instances, and of one: Java's clients have some hundreds.
MAX_SERIES = 20_000
MAX_SERIES_OF_INSTANCE = 1_000
#: The most characters of a series: its name, its labels, and the client id.
MAX_CHARACTERS = 1_024

#: Names and values.
Labels = tuple[tuple[str, str], ...]


class Kind(Enum):
    """What a value is."""

    GAUGE = "gauge"
    #: It only grows, but for a restart.
    COUNTER = "counter"


class Point(NamedTuple):
    """One value in a push."""

    name: str
    #: Sorted by their names.
    labels: Labels
    kind: Kind
    value: float
    #: The value is the change since the last push.
    is_delta: bool = False


class Series(NamedTuple):
    """A series and its newest value. The labels hold neither of the ids."""

    name: str
    client_instance_id: str
    client_id: str
    labels: Labels
    kind: Kind
    value: float
    #: When it was pushed, of the monotonic clock.
    pushed_ms: int


class _Pushed(NamedTuple):
    """The series of one instance."""

    client_id: str
    pushed_ms: int
    #: Forgotten from this moment on.
    forgotten_ms: int
    points: dict[tuple[str, Labels], Point]


class PushedSeries:
    """The series of all instances."""

    def __init__(self, limit: int = MAX_SERIES, limit_of_instance: int = MAX_SERIES_OF_INSTANCE) -> None:
        self.limit = limit
        self.limit_of_instance = limit_of_instance
        #: Values that were pushed and not kept; what lies behind the last one that was read counts as one.
        self.dropped = 0
        self._pushed: dict[bytes, _Pushed] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(
        self,
        client_instance_id: bytes,
        client_id: str,
        points: Iterable[Point | None],
        interval_ms: int,
        now_ms: int,
    ) -> None:
        """Keep what an instance has pushed; None stands for a value that cannot be kept."""
        before = self._pushed.get(client_instance_id)
        self.forget(client_instance_id)
        if self._count + self.limit_of_instance > self.limit:
            self._forget_silent(now_ms)
        room = min(self.limit_of_instance, self.limit - self._count)
        kept: dict[tuple[str, Labels], Point] = {}
        for number, point in enumerate(points):
            if number == room:
                self.dropped += 1
                break
            if point is None or _characters(point, client_id) > MAX_CHARACTERS:
                self.dropped += 1
                continue
            key = point.name, point.labels
            if point.is_delta and before is not None and key in before.points:
                point = point._replace(value=before.points[key].value + point.value)
            kept[key] = point
        if kept:
            self._count += len(kept)
            forgotten_ms = now_ms + SILENT_INTERVALS * interval_ms
            self._pushed[client_instance_id] = _Pushed(client_id, now_ms, forgotten_ms, kept)

    def forget(self, client_instance_id: bytes) -> None:
        """Forget an instance."""
        pushed = self._pushed.pop(client_instance_id, None)
        if pushed is not None:
            self._count -= len(pushed.points)

    def newest(self, now_ms: int) -> Iterator[Series]:
        """All series of instances that are not silent; others may be pushed meanwhile."""
        self._forget_silent(now_ms)
        for client_instance_id, pushed in list(self._pushed.items()):
            text = uuid_text(client_instance_id)
            for (name, labels), point in pushed.points.items():
                yield Series(name, text, pushed.client_id, labels, point.kind, point.value, pushed.pushed_ms)

    def _forget_silent(self, now_ms: int) -> None:
        for client_instance_id in [
            each for each, pushed in self._pushed.items() if pushed.forgotten_ms <= now_ms
        ]:
            self.forget(client_instance_id)


def _characters(point: Point, client_id: str) -> int:
    return len(point.name) + sum(len(name) + len(value) for name, value in point.labels) + len(client_id)
