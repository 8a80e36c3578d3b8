"""A set that iterates over its members in the order in which they were added.

A `set` of objects that are equal only to themselves is iterated in the order of their addresses in memory.
That order differs from run to run, so a simulation could not repeat a run.
"""

from __future__ import annotations

from typing import TypeVar

Member = TypeVar("Member")


class OrderedSet(dict[Member, None]):
    """A set with `add`, `discard`, membership and iteration."""

    __slots__ = ()

    def add(self, member: Member) -> None:
        """Add a member at the end; a member that is there keeps its place."""
        self[member] = None

    def discard(self, member: Member) -> None:
        """Remove a member if it is there."""
        self.pop(member, None)
