"""The names that ACLs of one kind are about, to be asked whether one of them begins a longer name.

The names are kept in their order. The last one that is not behind a name either begins it, or no name begins
it that is longer than what both have in common, so that the search goes on with that. It takes a few binary
searches, however many names there are. Names that come in a crowd are put in order when the first question is
asked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

#: If this part of all names is new, all are sorted; fewer are inserted one by one.
_CROWD = 16
#: Behind every name that begins with the text before it.
_LAST = "\U0010ffff"


class Names:
    """Names that come and go; one that is added twice has to be removed twice."""

    __slots__ = ("_counts", "_new", "_order")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._order: list[str] = []
        #: Those that are not in their place yet.
        self._new: list[str] = []

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    def add(self, name: str) -> None:
        """Have it count from now on."""
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        if not count:
            self._new.append(name)

    def remove(self, name: str) -> None:
        """Forget it. Raises KeyError if it is not there."""
        if self._counts[name] > 1:
            self._counts[name] -= 1
            return
        del self._counts[name]
        order = self.in_order()
        del order[bisect_left(order, name)]

    def in_order(self) -> list[str]:
        """All of them; not to be changed."""
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
        """One that `name` begins with, if there is any."""
        order = self.in_order()
        while at := bisect_right(order, name):
            before = order[at - 1]
            if name.startswith(before):
                return before
            name = name[: _common_length(before, name)]
        return None

    def left_by(self, closing: Sequence[Names]) -> Iterator[str]:
        """Those with which none of `closing` begins. Takes a step for each of them and of `closing`."""
        order = self.in_order()
        at = 0
        while at < len(order):
            name = order[at]
            beginning = next((found for each in closing if (found := each.beginning_of(name))), None)
            if beginning is None:
                yield name
            at = at + 1 if beginning is None else bisect_right(order, beginning + _LAST, at + 1)


def _common_length(one: str, other: str) -> int:
    """How many characters both begin with."""
    return bisect_left(range(1, min(len(one), len(other)) + 1), True, key=lambda to: one[:to] != other[:to])
