"""The checker itself: a right history has no anomaly, and every kind of wrong one is called by its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.history import History, Place, Value, anomalies


def right() -> History:
    """Two producers, two partitions, a consumer, a group."""
    history = History(partitions=2, sent={0: 4, 1: 2})
    history.final = {
        0: [(0, Value(0, 0)), (1, Value(1, 0)), (2, Value(0, 2))],
        1: [(0, Value(0, 1)), (1, Value(1, 1)), (2, Value(0, 3))],
    }
    history.acknowledged = [
        (Place(partition, offset), value)
        for partition, records in history.final.items()
        for offset, value in records
        if value != Value(0, 3)
    ]
    history.polls["reader"] = [(Place(0, 0), Value(0, 0)), (Place(0, 1), Value(1, 0))]
    history.commits = [(1, 1), (1, 2)]
    history.seeks = [(Place(0, 1), 1)]
    return history


def lost(history: History) -> None:
    history.final[1][1:] = []


def lost_somewhere(history: History) -> None:
    history.acknowledge(1, None, Value(1, 3))


def duplicated(history: History) -> None:
    history.final[1].append((3, Value(0, 3)))


def phantom(history: History) -> None:
    history.final[0].append((3, Value(0, 4)))


def reordered(history: History) -> None:
    history.acknowledged = []
    history.final[0] = [(0, Value(0, 2)), (1, Value(0, 0))]


def gap(history: History) -> None:
    history.acknowledged = []
    history.polls.clear()
    history.final[0] = [(0, Value(0, 2))]


def sparse(history: History) -> None:
    history.acknowledged = []
    history.final[1][2] = (7, Value(0, 3))


def vanished(history: History) -> None:
    history.polls["reader"].append((Place(0, 3), Value(1, 2)))


def inconsistent(history: History) -> None:
    history.polls["other"] = [(Place(0, 2), Value(1, 2))]


def skipped(history: History) -> None:
    history.polls["reader"] = [(Place(0, 0), Value(0, 0)), (Place(0, 2), Value(0, 2))]


def backwards(history: History) -> None:
    history.polls["reader"] = [(Place(0, 1), Value(1, 0)), (Place(0, 0), Value(0, 0))]


def went_back(history: History) -> None:
    history.commits.append((2, 1))


def sought(history: History) -> None:
    history.seeks.append((Place(0, 1), 2))


def unsafe(history: History) -> None:
    history.unsafe_reads.append(Place(0, 9))


def refused(history: History) -> None:
    history.refused.append("no")


@pytest.mark.parametrize(
    "change, name",
    [
        (lost, "lost"),
        (lost_somewhere, "lost"),
        (duplicated, "duplicated"),
        (phantom, "phantom"),
        (reordered, "reordered"),
        (gap, "gap"),
        (sparse, "offsets not dense"),
        (vanished, "vanished"),
        (inconsistent, "inconsistent offsets"),
        (skipped, "poll skip"),
        (backwards, "nonmonotonic poll"),
        (went_back, "commit went back"),
        (sought, "wrong seek"),
        (unsafe, "read before it was safe"),
        (refused, "refused"),
    ],
)
def test_a_wrong_history_is_called_by_its_name(change: Callable[[History], None], name: str) -> None:
    history = right()
    change(history)
    assert name in anomalies(history)


def test_a_right_history_has_no_anomaly() -> None:
    assert anomalies(right()) == {}


def test_a_value_that_was_acknowledged_without_its_offset_is_looked_for_in_the_whole_log() -> None:
    history = right()
    history.acknowledge(1, None, Value(0, 3))
    assert anomalies(history) == {}
    assert history.acknowledged_places == {Place(p, o) for p in history.final for o in range(3)}
    assert Value(0, 3) in history.acknowledged_values


@pytest.mark.parametrize("data", [None, b"", b"0:1", b"a:b:c"])
def test_a_value_that_no_producer_wrote_is_a_phantom(data: bytes | None) -> None:
    history = right()
    history.final[0].append((3, Value.parse(data)))
    assert "phantom" in anomalies(history)
