"""Features: a new cluster's levels, and what raises or lowers them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.features import (
    KEPT_FEATURES,
    METADATA_VERSION_NAMES,
    NODE_FEATURES,
    SERVED_FEATURES,
    bootstrap_records,
    can_work_at,
    merely_kept,
)
from pykafka_broker.cluster.image import ClusterImage, FeatureRange, replay
from pykafka_broker.controller.core.events import EventError, FeatureUpdate, UpdateFeatures, UpgradeType
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import a_cluster, an_empty_cluster, decide, register

PREFIX = "The update failed for all features since the following feature had an error: "


def without_shares(**settings: Any) -> ControllerState:
    """A cluster in which all nodes support share groups, and they are switched off."""
    return at(an_empty_cluster(supported_features=NODE_FEATURES, **settings), ("share.version", 0))


def update(
    state: ControllerState,
    *updates: tuple[str, int] | tuple[str, int, int],
    validate_only: bool = False,
    refusal: str | None = None,
) -> tuple[ControllerState, tuple[Any, ...], Any]:
    return decide(state, UpdateFeatures(tuple(FeatureUpdate(*u) for u in updates), validate_only, refusal))


def test_a_new_cluster_starts_with_the_levels_it_serves_metadata_version_first() -> None:
    first, *rest = bootstrap_records()
    assert first == m.FeatureLevelRecord(name="metadata.version", feature_level=30)
    levels = [record for record in rest if isinstance(record, m.FeatureLevelRecord)]
    assert levels == rest
    assert {r.name: r.feature_level for r in levels} == {
        name: level for name, level in SERVED_FEATURES.items() if level and name != "metadata.version"
    }
    assert METADATA_VERSION_NAMES[SERVED_FEATURES["metadata.version"]] == "4.3-IV0"


def test_a_level_that_all_nodes_support_is_finalized_and_taken_back() -> None:
    state = register(without_shares(), 1, features=NODE_FEATURES)

    state, records, answer = update(state, ("share.version", 1))
    assert (records, answer) == ((m.FeatureLevelRecord(name="share.version", feature_level=1),), None)
    assert state.image.features["share.version"] == 1

    state, _, _ = update(state, ("share.version", 0, UpgradeType.SAFE_DOWNGRADE))
    assert "share.version" not in state.image.features


def test_validate_only_changes_nothing() -> None:
    state = without_shares()
    assert update(state, ("share.version", 1), validate_only=True) == (state, (), None)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            ("share.version", 1, UpgradeType.UNKNOWN),
            "Invalid update version 1 for feature share.version. The controller does not support the given "
            "upgrade type.",
        ),
        (
            ("share.version", -1),
            "Invalid update version -1 for feature share.version. A feature version cannot be less than 0.",
        ),
        (
            ("nonsense.version", 1),
            "Invalid update version 1 for feature nonsense.version. Local controller 1 does not support "
            "this feature.",
        ),
        (
            ("metadata.version", 99),
            "Invalid update version 99 for feature metadata.version. Local controller 1 only supports "
            "versions 7-30",
        ),
        (
            ("metadata.version", 29),
            "Invalid update version 29 for feature metadata.version. Can't downgrade the version of this "
            "feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            ("share.version", 1, UpgradeType.SAFE_DOWNGRADE),
            "Invalid update version 1 for feature share.version. Can't downgrade to a newer version.",
        ),
        (
            ("metadata.version", 29, UpgradeType.SAFE_DOWNGRADE),
            "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested "
            "downgrade because it might delete metadata information.",
        ),
        (
            ("metadata.version", 29, UpgradeType.UNSAFE_DOWNGRADE),
            "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not "
            "supported in this version.",
        ),
        (
            ("nonsense.version", 0),
            "Invalid update version 0 for feature nonsense.version. Feature nonsense.version not found.",
        ),
        (
            ("kraft.version", 0, UpgradeType.UNSAFE_DOWNGRADE),
            "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this "
            "feature.",
        ),
        (
            ("kraft.version", 2),
            "Invalid update version 2 for feature kraft.version. Local controller 1 only supports versions "
            "0-1",
        ),
    ],
)
def test_an_update_that_cannot_be_is_refused_with_the_reason(
    change: tuple[str, int] | tuple[str, int, int], message: str
) -> None:
    state = without_shares()
    refusal = EventError(ErrorCode.INVALID_UPDATE_VERSION, PREFIX + message)
    assert update(state, change) == (state, (), refusal)


def test_one_node_that_is_too_old_holds_the_cluster_back() -> None:
    older = {**NODE_FEATURES, "share.version": FeatureRange(0, 0)}
    state = register(without_shares(), 2, features=older)
    _, records, answer = update(state, ("share.version", 1))
    assert (records, answer.message) == (
        (),
        f"{PREFIX}Invalid update version 1 for feature share.version. "
        "Broker 2 does not support this feature.",
    )
    state = without_shares(voters=(1, 2))
    _, _, answer = update(state, ("share.version", 1))
    assert answer.message.endswith("controller 2 has not registered, and may not support this feature")


def test_switching_on_eligible_leader_replicas_gives_the_cluster_one_min_insync_replicas() -> None:
    state = a_cluster(1)
    old = [
        m.FeatureLevelRecord(name="metadata.version", feature_level=30),
        m.ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="2"),
    ]
    state = ControllerState(replay(ClusterImage("c"), old, offset=0, epoch=1), state.rules)

    state, _, _ = update(state, ("eligible.leader.replicas.version", 1))

    assert state.image.configs == {(4, ""): {"min.insync.replicas": "1"}}


def test_a_level_that_is_merely_kept_can_be_lowered_and_not_raised() -> None:
    kept = at(an_empty_cluster(), ("share.version", 2))
    assert kept.image.features["share.version"] == 2

    lowered, _, answer = update(kept, ("share.version", 0, UpgradeType.SAFE_DOWNGRADE))
    assert (answer, "share.version" in lowered.image.features) == (None, False)

    _, records, answer = update(lowered, ("share.version", 2))
    assert (records, answer.error) == ((), ErrorCode.INVALID_UPDATE_VERSION)


@pytest.mark.parametrize("name, level", KEPT_FEATURES.items())
def test_a_node_can_be_where_a_feature_has_a_level_that_is_kept_and_no_higher_one(
    name: str, level: int
) -> None:
    assert [can_work_at(name, n, FeatureRange(0, 0)) for n in range(level + 2)] == [True] * (level + 1) + [
        False
    ]


def test_kept_is_what_is_finalized_above_what_is_served() -> None:
    levels = {**SERVED_FEATURES, "share.version": SERVED_FEATURES["share.version"] + 1}
    assert merely_kept(SERVED_FEATURES) == {}
    assert merely_kept(levels) == {"share.version": levels["share.version"]}


def at(state: ControllerState, *levels: tuple[str, int]) -> ControllerState:
    """The same cluster with other levels."""
    records = [m.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]
    return ControllerState(replay(state.image, records, offset=state.next_offset, epoch=1), state.rules)


@pytest.mark.parametrize(
    "current, wanted, is_lost",
    [(30, 29, True), (29, 23, False), (29, 22, True), (22, 17, False), (17, 16, True), (14, 13, True)],
)
def test_metadata_version_is_lowered_to_one_that_can_say_the_same(
    current: int, wanted: int, is_lost: bool
) -> None:
    state = at(an_empty_cluster(), ("metadata.version", current))

    lowered, _, answer = update(state, ("metadata.version", wanted, UpgradeType.SAFE_DOWNGRADE))

    assert (answer is not None, lowered.image.metadata_version) == (is_lost, current if is_lost else wanted)


def test_metadata_version_is_raised_by_as_many_steps_as_one_likes() -> None:
    raised, _, answer = update(at(an_empty_cluster(), ("metadata.version", 7)), ("metadata.version", 30))
    assert (answer, raised.image.metadata_version) == (None, 30)


def test_eligible_leader_replicas_need_a_metadata_version_that_can_tell_of_them() -> None:
    elr, old = "eligible.leader.replicas.version", at(an_empty_cluster(), ("metadata.version", 22))
    text = f"Invalid update version 1 for feature {elr}. {elr} could not be set to 1 because it depends on "

    refused = update(old, (elr, 1))
    both, _, answer = update(old, (elr, 1), ("metadata.version", 23))

    assert refused[1:] == (
        (),
        EventError(ErrorCode.INVALID_UPDATE_VERSION, f"{PREFIX}{text}metadata.version level 23"),
    )
    assert (answer, both.image.features[elr], both.image.metadata_version) == (None, 1, 23)


def test_of_several_updates_of_a_feature_the_last_counts() -> None:
    state = at(an_empty_cluster(), ("group.version", 1))
    state, records, _ = update(state, ("group.version", 1), ("group.version", 0, UpgradeType.SAFE_DOWNGRADE))
    assert records == (m.FeatureLevelRecord(name="group.version", feature_level=0),)
    assert "group.version" not in state.image.features


def test_the_error_is_that_of_the_first_wrong_update_in_the_order_of_a_hash_map() -> None:
    _, records, answer = update(an_empty_cluster(), ("foo", 1), ("bar", 1), ("group.version", 1))
    assert (records, answer.message.removeprefix(PREFIX)) == (
        (),
        "Invalid update version 1 for feature bar. Local controller 1 does not support this feature.",
    )


def test_the_level_of_the_quorum_stays_and_is_raised_only_to_what_it_is() -> None:
    state = an_empty_cluster()
    assert update(state, ("kraft.version", 1))[1:] == ((m.NoOpRecord(),), None)
    assert update(state, ("kraft.version", 1, UpgradeType.SAFE_DOWNGRADE))[1:] == ((), None)


def test_the_level_of_the_quorum_is_raised_if_its_voters_allow_it() -> None:
    state, raising = an_empty_cluster(kraft_version=0), ("kraft.version", 1)
    assert update(state, raising)[1:] == ((m.NoOpRecord(),), None)
    _, records, answer = update(state, raising, refusal="not all of the voters support it")
    assert (records, answer.message) == ((), f"{PREFIX}not all of the voters support it")
    _, records, answer = update(state, (*raising, UpgradeType.SAFE_DOWNGRADE))
    assert (records, answer.error) == ((), ErrorCode.INVALID_UPDATE_VERSION)
