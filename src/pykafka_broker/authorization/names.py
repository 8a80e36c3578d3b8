"""The names of ACLs of one kind, with a search for a name that is a prefix of another name.

The names are sorted. The search looks at the last name that is not greater than the wanted one. Either it is
a prefix of the wanted name, or every prefix among the names is at most as long as the common part of both,
with which the search continues. This takes a few binary searches, for any number of names. New names are
sorted in at the next search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

#: If more than 1/16 of the names are new, all are sorted; fewer are inserted one by one.
_CROWD = 16
#: A name followed by this is greater than every other name with that prefix.
_LAST = "\U0010ffff"


class Names:
    """A changing set of names; a name that is added twice must be removed twice."""

    __slots__ = ("_counts", "_new", "_order")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._order: list[str] = []
        #: The names that are not sorted into `_order` yet.
        self._new: list[str] = []

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    def add(self, name: str) -> None:
        """Add a name."""
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        if not count:
            self._new.append(name)

    def remove(self, name: str) -> None:
        """Remove a name. Raises KeyError if it is not there."""
        if self._counts[name] > 1:
            self._counts[name] -= 1
            return
        del self._counts[name]
        order = self.in_order()
        del order[bisect_left(order, name)]

    def in_order(self) -> list[str]:
        """All names, sorted; callers must not change the list."""
        if self._new:
            if len(self._new) * _CROWD > len(self._order):
                self._order += self._new
                self._order.sort()
            else:
                for name in self._new:
                    insort(self._order, name)
            self._new = []
        return self._order

    def beginning_of(self, name: str) -> str | None:
        """One of the names that is a prefix of `name`, or None."""
        order = self.in_order()
        while at := bisect_right(order, name):
            before = order[at - 1]
            if name.startswith(before):
                return before
            name = name[: _common_length(before, name)]
        return None

    def left_by(self, closing: Sequence[Names]) -> Iterator[str]:
        """The names that have no prefix in `closing`. Takes a step for each of them and of `closing`."""
        order = self.in_order()
        at = 0
        while at < len(order):
            name = order[at]
            beginning = next((found for each in closing if (found := each.beginning_of(name))), None)
            if beginning is None:
                yield name
            at = at + 1 if beginning is None else bisect_right(order, beginning + _LAST, at + 1)


def _common_length(one: str, other: str) -> int:
    """The length of the common prefix."""
    return bisect_left(range(1, min(len(one), len(other)) + 1), True, key=lambda to: one[:to] != other[:to])
