"""The feature levels that a new cluster is formatted with, as `kafka-storage format` chooses them (KIP-1022).

A release gives every feature its level; `--feature` chooses another. Levels that this software does not serve
yet are never defaults; `--feature` may choose those that do no harm (`features.py`). The error texts are
those of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.cluster.features import (
    ELR_NEEDS_METADATA_VERSION,
    ELR_VERSION,
    GROUP_VERSION,
    KEPT_FEATURES,
    KRAFT_VERSION,
    KRAFT_VERSION_LEVEL,
    LATEST_METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SERVED_FEATURES,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from pykafka_broker.cluster.image import METADATA_VERSION, MINIMUM_METADATA_VERSION

#: Feature -> the first metadata.version with which a new cluster has it, and its level there.
LEVEL_SINCE: dict[str, tuple[int, int]] = {
    ELR_VERSION: (26, 1),
    GROUP_VERSION: (22, 1),
    SHARE_VERSION: (28, 1),
    STREAMS_VERSION: (29, 1),
    TRANSACTION_VERSION: (24, 2),
}
#: Part of error texts: when the quorum is dynamic (KIP-853).
DYNAMIC = (
    "controller.quorum.voters is empty and one of the flags --standalone, --initial-controllers, or "
    "--no-initial-controllers is used"
)


def metadata_version_of(release: str) -> int:
    """The metadata.version of a release: the newest one of "4.0", or exactly "4.0-IV1".

    Raises:
        ValueError: there is no such release.
    """
    wanted = ".".join(release.split(".")[:2])
    newest: int | None = None
    for level, name in METADATA_VERSION_NAMES.items():
        if wanted in (name, name.partition("-")[0]):
            newest = level
    if newest is None:
        names = ", ".join(METADATA_VERSION_NAMES.values())
        raise ValueError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {names}")
    return newest


def parse_features(settings: Iterable[str]) -> dict[str, int]:
    """The levels of `feature=level` settings.

    Raises:
        ValueError: one cannot be read.
    """
    levels = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"Can't parse feature=level string {setting}: equals sign not found.")
        try:
            levels[name.strip()] = int(text)
        except ValueError:
            raise ValueError(
                f"Can't parse feature=level string {setting}: unable to parse {text} as a short."
            ) from None
    return levels


def initial_levels(
    release: str | None, asked: Mapping[str, int], *, is_quorum_dynamic: bool
) -> dict[str, int]:
    """The level of every feature of a new cluster, including metadata.version but not kraft.version.

    Raises:
        ValueError: a level is unknown or conflicts with the others.
    """
    metadata_version = _metadata_version(release, asked)
    names = sorted((*LEVEL_SINCE, KRAFT_VERSION))
    for name in asked:
        if name != METADATA_VERSION and name not in names:
            raise ValueError(f"Unsupported feature: {name}. Supported features are: {', '.join(names)}")
    if KRAFT_VERSION in asked:
        _check_kraft_version(asked[KRAFT_VERSION], is_quorum_dynamic)
    levels = {METADATA_VERSION: metadata_version}
    for name, (since, level) in LEVEL_SINCE.items():
        usual = min(level, SERVED_FEATURES[name]) if metadata_version >= since else 0
        levels[name] = asked.get(name, usual)
        if not 0 <= levels[name] <= max(SERVED_FEATURES[name], KEPT_FEATURES.get(name, 0)):
            raise _no_such_level(name, levels[name])
    if levels[ELR_VERSION] and metadata_version < ELR_NEEDS_METADATA_VERSION:
        raise ValueError(
            f"{ELR_VERSION} could not be set to {levels[ELR_VERSION]} because it depends on "
            f"{METADATA_VERSION} level {ELR_NEEDS_METADATA_VERSION}"
        )
    return levels


def _metadata_version(release: str | None, asked: Mapping[str, int]) -> int:
    if METADATA_VERSION not in asked:
        return LATEST_METADATA_VERSION if release is None else metadata_version_of(release)
    if release is not None:
        raise ValueError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    level = asked[METADATA_VERSION]
    if level not in METADATA_VERSION_NAMES:
        raise ValueError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{MINIMUM_METADATA_VERSION} to {LATEST_METADATA_VERSION}."
        )
    return level


def _check_kraft_version(level: int, is_quorum_dynamic: bool) -> None:
    if level == 0 and is_quorum_dynamic:
        raise ValueError(
            f"Cannot set {KRAFT_VERSION} to 0 if {DYNAMIC}. For dynamic controllers support, try removing "
            f"the --feature flag for {KRAFT_VERSION}."
        )
    if level != 0 and not is_quorum_dynamic:
        raise ValueError(
            f"Cannot set {KRAFT_VERSION} to {level} unless {DYNAMIC}. For dynamic controllers support, try "
            "using one of --standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    if not 0 <= level <= KRAFT_VERSION_LEVEL:
        raise _no_such_level(KRAFT_VERSION, level)


def _no_such_level(name: str, level: int) -> ValueError:
    return ValueError(f"No feature:{name} with feature level {level}")
