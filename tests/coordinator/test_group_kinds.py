"""The kinds of groups: each that a state can hold answers for itself."""

from __future__ import annotations

from typing import get_args

from pykafka_broker.coordinator.groups.core.kinds import KINDS, kind_of
from pykafka_broker.coordinator.groups.core.state import Group
from tests.support.share_groups import ShareWorld


def test_every_class_of_group_has_a_kind_with_a_name_of_its_own() -> None:
    assert set(KINDS) == set(get_args(Group))
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)


def test_groups_are_told_apart_by_what_they_are() -> None:
    world = ShareWorld()
    world.commit({("t", 0): 1}, group_id="simple")
    world.join_consumer("a", "t", group_id="consumers")
    world.join_share("a", "t", group_id="shared")

    kinds = {group_id: kind_of(group).name for group_id, group in world.state.groups.items()}

    assert kinds == {"simple": "classic", "consumers": "consumer", "shared": "share"}
