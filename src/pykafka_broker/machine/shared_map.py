"""A mapping whose versions share most of their content: for tables of metadata with many entries.

The entries are in buckets; there are about as many buckets as each has entries. A change copies the buckets
that it touches and the list of buckets, which takes a few microseconds with a hundred thousand entries. Two
versions are compared by the buckets that they do not share. Unlike in a `VersionedMap`, every version is as
cheap to read as the newest, also in threads and if several parts of a node make their own versions.

The order is that of the buckets. It is the same in every process if `place_of` gives the same numbers there;
`hash` does not.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from itertools import chain
from typing import Any, Generic, Optional, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
#: A key, its value in the older and in the newer version: None if missing.
Change = tuple[Key, Optional[Value], Optional[Value]]


class SharedMap(Mapping[Key, Value], Generic[Key, Value]):
    """An immutable mapping; `draft` begins the next version. Values must not be None."""

    __slots__ = ("_buckets", "_length", "_place_of")

    def __init__(self, place_of: Callable[[Key], int]) -> None:
        """`place_of` returns evenly spread numbers, also in their last bits."""
        self._place_of = place_of
        self._buckets: tuple[dict[Key, Value], ...] = ({},)
        self._length = 0

    def draft(self) -> Draft[Key, Value]:
        """A draft of the next version."""
        return Draft(self._place_of, list(self._buckets), self._length)

    def changes_since(self, older: SharedMap[Key, Value]) -> Iterator[Change[Key, Value]]:
        """The entries whose values are not the same object here and in `older`."""
        if len(self._buckets) == len(older._buckets):
            pairs = list(zip(older._buckets, self._buckets, strict=True))
        else:
            pairs = [(dict(older.items()), dict(self.items()))]
        for before, after in pairs:
            if before is after:
                continue
            for key, value in before.items():
                if (now := after.get(key)) is not value:
                    yield key, value, now
            for key, value in after.items():
                if key not in before:
                    yield key, None, value

    def __getitem__(self, key: Key) -> Value:
        return self._buckets[self._place_of(key) % len(self._buckets)][key]

    def __iter__(self) -> Iterator[Key]:
        return chain.from_iterable(self._buckets)

    def __len__(self) -> int:
        return self._length

    # The methods of `Mapping` would look each key up.
    def items(self) -> ItemsView[Key, Value]:
        return _Items(self)

    def values(self) -> ValuesView[Value]:
        return _Values(self)

    def __repr__(self) -> str:
        return f"SharedMap({dict(self.items())!r})"


class _Items(ItemsView[Any, Any]):
    _mapping: SharedMap[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(map(dict.items, self._mapping._buckets))


class _Values(ValuesView[Any]):
    _mapping: SharedMap[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(map(dict.values, self._mapping._buckets))


class Draft(MutableMapping[Key, Value], Generic[Key, Value]):
    """A version under construction; the version from which it began stays unchanged."""

    __slots__ = ("_buckets", "_length", "_own", "_place_of")

    def __init__(self, place_of: Callable[[Key], int], buckets: list[dict[Key, Value]], length: int) -> None:
        self._place_of = place_of
        self._buckets = buckets
        self._length = length
        #: The indexes of the buckets that no other version has.
        self._own: set[int] = set()

    def finished(self) -> SharedMap[Key, Value]:
        """The finished version; the draft must not be used after this."""
        made: SharedMap[Key, Value] = SharedMap(self._place_of)
        made._buckets, made._length = tuple(self._buckets), self._length
        return made

    def __getitem__(self, key: Key) -> Value:
        return self._buckets[self._place_of(key) % len(self._buckets)][key]

    def __setitem__(self, key: Key, value: Value) -> None:
        bucket = self._opened(key)
        self._length += key not in bucket
        bucket[key] = value
        if self._length > 4 * len(self._buckets) ** 2:
            self._spread()

    def __delitem__(self, key: Key) -> None:
        del self._opened(key)[key]
        self._length -= 1

    def __iter__(self) -> Iterator[Key]:
        return chain.from_iterable(self._buckets)

    def __len__(self) -> int:
        return self._length

    def _opened(self, key: Key) -> dict[Key, Value]:
        at = self._place_of(key) % len(self._buckets)
        if at not in self._own:
            self._own.add(at)
            self._buckets[at] = dict(self._buckets[at])
        return self._buckets[at]

    def _spread(self) -> None:
        """Make four times as many buckets; this happens a few times on the way to a million entries."""
        wider: list[dict[Key, Value]] = [{} for _ in range(4 * len(self._buckets))]
        for bucket in self._buckets:
            for key, value in bucket.items():
                wider[self._place_of(key) % len(wider)][key] = value
        self._buckets = wider
        self._own = set(range(len(wider)))
