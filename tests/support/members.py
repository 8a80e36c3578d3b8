"""The member of a group that a request comes from."""

from __future__ import annotations

from typing import NamedTuple


class Member(NamedTuple):
    """A member as a commit names it."""

    member_id: str
    #: The generation of a classic group, or the epoch of a member of a consumer group.
    generation: int
    #: The group instance id of a static member.
    instance: str | None = None


#: Commits for a group that has no members.
NO_MEMBER = Member("", -1)
