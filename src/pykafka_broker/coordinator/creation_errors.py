"""Remembers for a while why topics could not be created, to tell the clients that wait for them."""

from __future__ import annotations

from collections.abc import Iterable

#: The most topics remembered; those that expire first are dropped first.
CAPACITY = 1_000


class CreationErrors:
    """The errors of topics, by name, each until a moment of a monotonic clock (milliseconds)."""

    def __init__(self) -> None:
        self._errors: dict[str, tuple[int, str]] = {}

    def put(self, name: str, error: str, until_ms: int, now_ms: int) -> None:
        """Remember the error of a topic until `until_ms`."""
        self._errors[name] = until_ms, error
        if len(self._errors) > CAPACITY:
            self._errors = {key: each for key, each in self._errors.items() if each[0] > now_ms}
        while len(self._errors) > CAPACITY:
            del self._errors[min(self._errors, key=lambda key: self._errors[key][0])]

    def of(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """The error texts of those of `names` that have one, in the order of `names`."""
        found = ((name, self._errors.get(name)) for name in names)
        return {name: each[1] for name, each in found if each is not None and each[0] > now_ms}
