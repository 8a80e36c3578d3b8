"""A set whose members come in the order in which they were added.

Most objects are equal only to themselves, and a `set` of them is iterated in the order of their addresses in
memory: what a broker does to one after the other would differ from run to run, and a simulation could not
repeat it.
"""

from __future__ import annotations

from typing import TypeVar

Member = TypeVar("Member")


class OrderedSet(dict[Member, None]):
    """What `set` has for single members, and iteration."""

    __slots__ = ()

    def add(self, member: Member) -> None:
        """Have this member, last unless it is there already."""
        self[member] = None

    def discard(self, member: Member) -> None:
        """Have this member no longer."""
        self.pop(member, None)
