"""A mapping whose older versions stay readable: the state of a core with a million entries changes in O(1).

A core's state is a value: a transition returns the next one and the shell keeps the old one until the records
are in the log. Copying a dict of all committed offsets for each commit would be expensive, so the tables of a
core are `VersionedMap`s (Baker's rerooting): the newest version owns the dict, an older one only has the
changes to undo from the next newer version. Reading and changing the newest version costs as much as with a
dict. Reading an older version first moves the dict to that version, which costs as much as the changes in
between. That happens after a failed append and in tests, never in normal operation.

Maps compare with `==` like any mapping. Not thread-safe. A new version ends an iteration.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Any, Final, Generic, TypeVar, overload

Key = TypeVar("Key")
Value = TypeVar("Value")
Default = TypeVar("Default")

_ABSENT: Final[Any] = object()
#: The undo map of the newest version: nothing to undo. Never changed.
_NOTHING: Final[dict[Any, Any]] = {}


class VersionedMap(Mapping[Key, Value], Generic[Key, Value]):
    """An immutable mapping; `with_changes` makes the next version in time proportional to the changes."""

    # Exactly one version of a family has `_data`; every other has `_newer` and the changes to `_undo`.
    __slots__ = ("_data", "_newer", "_undo")

    def __init__(self, data: Mapping[Key, Value] | None = None) -> None:
        self._data: dict[Key, Value] | None = dict(data) if data else {}
        self._newer: VersionedMap[Key, Value] | None = None
        self._undo: dict[Key, Value] = _NOTHING

    @classmethod
    def owning(cls, data: dict[Key, Value]) -> VersionedMap[Key, Value]:
        """Wrap `data` without copying it; the caller must not use it after this."""
        created = cls()
        created._data = data
        return created

    def with_changes(
        self, changes: Mapping[Key, Value], removed: Iterable[Key] = ()
    ) -> VersionedMap[Key, Value]:
        """The version after setting `changes` and dropping the existing keys of `removed`."""
        data = self._data
        if data is None:
            data = self._dict()
        undo: dict[Key, Value] = {}
        for key, value in changes.items():
            undo[key] = data.get(key, _ABSENT)
            data[key] = value
        for key in removed:
            if key in data:
                value = data.pop(key)
                undo.setdefault(key, value)
        return self._next(data, undo)

    def with_item(self, key: Key, value: Value) -> VersionedMap[Key, Value]:
        """The version after setting one entry."""
        data = self._data
        if data is None:
            data = self._dict()
        undo = {key: data.get(key, _ABSENT)}
        data[key] = value
        return self._next(data, undo)

    def _next(self, data: dict[Key, Value], undo: dict[Key, Value]) -> VersionedMap[Key, Value]:
        """The next version, which owns `data`; `undo` leads back to this one."""
        newer: VersionedMap[Key, Value] = VersionedMap.__new__(VersionedMap)
        newer._data = data
        newer._newer = None
        newer._undo = _NOTHING
        self._data = None
        self._newer = newer
        self._undo = undo
        return newer

    def without(self, key: Key) -> VersionedMap[Key, Value]:
        """The version after dropping one entry."""
        return self.with_changes({}, (key,))

    def added_next(self) -> list[Key]:
        """The keys that the next version has and this one lacks; this must not be the newest version."""
        return [key for key, value in self._undo.items() if value is _ABSENT]

    def removed_next(self) -> list[Key]:
        """The keys that the next version has removed, if it has only removed keys."""
        return list(self._undo)

    # Code that runs for each commit checks `_data` before it calls this, because a call costs more.
    def _dict(self) -> dict[Key, Value]:
        if self._data is not None:
            return self._data
        path = []
        version = self
        while version._newer is not None:
            path.append(version)
            version = version._newer
        data = version._data
        assert data is not None
        for older in reversed(path):
            redo: dict[Key, Value] = {}
            for key, value in older._undo.items():
                redo[key] = data.get(key, _ABSENT)
                if value is _ABSENT:
                    data.pop(key, None)  # it may have been set and removed in one step
                else:
                    data[key] = value
            version._data, version._newer, version._undo = None, older, redo
            older._data, older._newer, older._undo = data, None, _NOTHING
            version = older
        return data

    def __getitem__(self, key: Key) -> Value:
        data = self._data
        return (self._dict() if data is None else data)[key]

    @overload
    def get(self, key: Key, /) -> Value | None: ...
    @overload
    def get(self, key: Key, /, default: Value | Default) -> Value | Default: ...
    def get(self, key: Key, /, default: Any = None) -> Any:
        data = self._data
        return (self._dict() if data is None else data).get(key, default)

    def __contains__(self, key: object) -> bool:
        data = self._data
        return key in (self._dict() if data is None else data)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._dict())

    # The views of the dict itself: those of `Mapping` would look each key up.
    def items(self) -> ItemsView[Key, Value]:
        return self._dict().items()

    def values(self) -> ValuesView[Value]:
        return self._dict().values()

    def __len__(self) -> int:
        data = self._data
        return len(self._dict() if data is None else data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VersionedMap):
            # Two versions of one map cannot both own the dict, so one of them is compared by a copy.
            return self is other or dict(self._dict()) == other._dict()
        return self._dict() == other

    def __repr__(self) -> str:
        return f"VersionedMap({self._dict()!r})"
