"""ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.classic.records import group_tombstone
from pykafka_broker.coordinator.groups.core.events import (
    DeleteGroup,
    DescribedGroup,
    DescribedMember,
    DescribeGroup,
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld, subscription
from tests.support.members import Member


def three_groups() -> GroupWorld:
    """A simple group, a stable one and one that rebalances."""
    world = GroupWorld()
    world.commit({("t", 0): 1}, group_id="simple")
    world.stable_group(group_id="stable")
    world.join("forming", version=3)
    return world


SIMPLE = ListedGroup("simple", "", "Empty", "classic")
STABLE = ListedGroup("stable", "consumer", "Stable", "classic")
FORMING = ListedGroup("forming", "consumer", "PreparingRebalance", "classic")


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ((), (), {SIMPLE, STABLE, FORMING}),
        (("Stable",), (), {STABLE}),
        (("stable", " EMPTY "), (), {SIMPLE, STABLE}),
        (("nonsense",), (), set()),
        ((), ("classic",), {SIMPLE, STABLE, FORMING}),
        ((), ("Classic", "consumer"), {SIMPLE, STABLE, FORMING}),
        ((), ("consumer",), set()),
        ((), (" classic",), set()),
        (("PreparingRebalance",), ("CLASSIC",), {FORMING}),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: tuple[str, ...], types: tuple[str, ...], listed: set[ListedGroup]
) -> None:
    assert set(three_groups().ask(ListGroups, states, types)) == listed


def test_a_stable_group_is_described_with_what_its_members_said_and_got() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()

    assert world.ask(DescribeGroup, 6, "g") == DescribedGroup(
        ErrorCode.NONE,
        "g",
        "Stable",
        "consumer",
        "range",
        (DescribedMember(member, None, "client", "/127.0.0.1", subscription("t"), f"for {member}".encode()),),
    )


def test_a_group_that_rebalances_is_described_without_protocol_data() -> None:
    world = GroupWorld()
    world.join(version=3)

    described = world.ask(DescribeGroup, 6, "g")

    assert (described.state, described.protocol_type, described.protocol_data) == (
        "PreparingRebalance",
        "consumer",
        "",
    )
    assert described.members == (DescribedMember("client-1", None, "client", "/127.0.0.1", b"", b""),)


def test_a_missing_group_is_dead_and_from_version_6_on_an_error() -> None:
    world = GroupWorld()

    assert world.ask(DescribeGroup, 5, "g") == DescribedGroup(ErrorCode.NONE, "g", "Dead")
    assert world.ask(DescribeGroup, 6, "g") == DescribedGroup(
        ErrorCode.GROUP_ID_NOT_FOUND, "g", "Dead", error_message="Group g not found."
    )


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.commit({("t", 0): 1, ("u", 3): 2}, Member(member, 1))
    world.leave(member)

    assert world.ask(DeleteGroup, "g") is ErrorCode.NONE

    assert world.last_records == (
        OffsetRecord("g", "t", 0, None),
        OffsetRecord("g", "u", 3, None),
        group_tombstone("g"),
    )
    assert world.state == replay(world.log) == Groups.empty()


def test_a_group_with_members_is_not_deleted() -> None:
    world = GroupWorld()
    world.stable_group()

    assert world.ask(DeleteGroup, "g") is ErrorCode.NON_EMPTY_GROUP


def test_a_missing_group_cannot_be_deleted() -> None:
    assert GroupWorld().ask(DeleteGroup, "g") is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_id_given_out_by_a_deleted_group_is_worth_nothing() -> None:
    world = GroupWorld()
    pending = world.new_member_id()
    world.ask(DeleteGroup, "g")

    assert world.joined(world.join(member_id=pending)).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.advance(60_000)
    assert len(world.state.groups) == 0
