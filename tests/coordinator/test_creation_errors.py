"""Errors of topics that could not be created: told for a while, and not kept for more topics than there is
room.
"""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator import creation_errors
from pykafka_broker.coordinator.creation_errors import CreationErrors


def test_an_error_is_told_until_its_time_is_over() -> None:
    errors = CreationErrors()
    errors.put("a", "too few brokers", 10, 0)
    errors.put("b", "policy", 20, 0)

    assert errors.of(["b", "none", "a"], 9) == {"b": "policy", "a": "too few brokers"}
    assert list(errors.of(["b", "a"], 9)) == ["b", "a"], "in the order asked for"
    assert errors.of(["b", "a"], 10) == {"b": "policy"}


def test_a_newer_error_counts() -> None:
    errors = CreationErrors()
    errors.put("a", "first", 10, 0)
    errors.put("a", "second", 5, 1)

    assert errors.of(["a"], 4) == {"a": "second"}
    assert errors.of(["a"], 5) == {}


def test_the_room_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation_errors, "CAPACITY", 2)
    errors = CreationErrors()
    errors.put("short", "x", 5, 0)
    errors.put("long", "x", 50, 0)
    errors.put("middle", "x", 20, 0)
    assert list(errors.of(["short", "middle", "long"], 0)) == ["middle", "long"]

    errors.put("new", "x", 30, 25)

    assert list(errors.of(["middle", "long", "new"], 0)) == ["long", "new"], "what is over goes first"
