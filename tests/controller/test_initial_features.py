"""The features of a new cluster: those of its release, and those that are asked for."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.features import METADATA_VERSION_NAMES, SERVED_FEATURES
from pykafka_broker.controller.core.initial_features import (
    initial_levels,
    metadata_version_of,
    parse_features,
)

NONE = dict.fromkeys(
    ("eligible.leader.replicas.version", "group.version", "share.version", "streams.version"), 0
)


def test_a_new_cluster_has_what_is_served() -> None:
    assert initial_levels(None, {}, is_quorum_dynamic=True) == SERVED_FEATURES


@pytest.mark.parametrize(
    ("release", "level"), [("4.3", 30), ("4.3.1", 30), ("4.0-IV1", 23), ("4.0", 25), ("3.9", 21), ("3.3", 7)]
)
def test_a_release_stands_for_its_newest_metadata_version(release: str, level: int) -> None:
    assert metadata_version_of(release) == level


def test_a_release_gives_every_feature_its_level() -> None:
    assert initial_levels("3.9", {}, is_quorum_dynamic=True) == {
        "metadata.version": 21,
        "transaction.version": 0,
        **NONE,
    }
    assert initial_levels("4.0", {}, is_quorum_dynamic=True) == {
        "metadata.version": 25,
        "transaction.version": 2,
        **NONE,
        "group.version": 1,
    }


@pytest.mark.parametrize(("release", "level"), [("4.1", 0), ("4.2-IV0", 1), ("4.2", 1), ("4.3", 1)])
def test_share_groups_come_with_the_first_release_that_has_them_for_production(
    release: str, level: int
) -> None:
    assert initial_levels(release, {}, is_quorum_dynamic=True)["share.version"] == level


def test_what_is_asked_for_beats_the_release_even_if_it_is_only_kept() -> None:
    asked = parse_features(["group.version=0", "share.version=1", "transaction.version=1"])

    assert initial_levels("4.2", asked, is_quorum_dynamic=True) == {
        "metadata.version": 29,
        "eligible.leader.replicas.version": 1,
        "group.version": 0,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 1,
    }


@pytest.mark.parametrize(
    ("release", "asked", "is_dynamic", "error"),
    [
        ("9.9", {}, True, f"Unknown metadata.version '9.9'. .* {METADATA_VERSION_NAMES[30]}$"),
        (
            "4.0",
            {"metadata.version": 25},
            True,
            "Use --release-version instead of --feature metadata.version=X",
        ),
        (None, {"metadata.version": 6}, True, "No MetadataVersion with feature level 6"),
        (None, {"nonsense": 1}, True, "Unsupported feature: nonsense. Supported features are: eligible"),
        (None, {"group.version": 2}, True, "No feature:group.version with feature level 2"),
        (None, {"group.version": -1}, True, "No feature:group.version with feature level -1"),
        ("3.9", {"eligible.leader.replicas.version": 1}, True, "depends on metadata.version level 23"),
        (
            None,
            {"kraft.version": 0},
            True,
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty",
        ),
        (None, {"kraft.version": 1}, False, "Cannot set kraft.version to 1 unless controller.quorum.voters"),
        (None, {"kraft.version": 2}, True, "No feature:kraft.version with feature level 2"),
    ],
)
def test_levels_that_do_not_go_together_are_refused(
    release: str | None, asked: dict[str, int], is_dynamic: bool, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        initial_levels(release, asked, is_quorum_dynamic=is_dynamic)


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("group.version", "Can't parse feature=level string group.version: equals sign not found."),
        (
            "group.version=x",
            "Can't parse feature=level string group.version=x: unable to parse x as a short.",
        ),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused(setting: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_features([setting])
