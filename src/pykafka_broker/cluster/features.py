"""Features: the levels that this node can work at, and those that a new cluster starts with.

`SERVED_FEATURES` is the only table to change when an API family becomes served: `format` finalizes its level,
the broker registers it as its maximum, and ApiVersions tells it to clients.

A cluster that Apache Kafka formatted may have levels that are not served yet. `KEPT_FEATURES` has the highest
levels that do no harm: the level stays in the metadata, its records stay in the logs, its APIs are not
advertised, and Apache Kafka finds everything unchanged. Raising a level to one that is only kept is refused;
lowering it is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import METADATA_VERSION, MINIMUM_METADATA_VERSION, FeatureRange
from pykafka_broker.protocol.messages.records import metadata as m

#: metadata.version 4.3-IV0.
LATEST_METADATA_VERSION = 30
#: Controllers register with the active one since 3.7-IV0 (KIP-919).
CONTROLLER_REGISTRATIONS_SINCE = 15
#: Log directories have ids since 3.7-IV2 (KIP-858); records of older levels must not have them.
DIRECTORY_IDS_SINCE = 17
#: Cordoned log directories exist since 4.3-IV0 (KIP-1066); records of older levels must not have them.
CORDONED_DIRECTORIES_SINCE = 30
ELR_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"
KRAFT_VERSION = "kraft.version"
#: A quorum formatted here has its voters in the log; the level is in control records, not in the image.
KRAFT_VERSION_LEVEL = 1

#: The newest level of each feature that this software serves; 0: known, but not served yet.
SERVED_FEATURES: dict[str, int] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    ELR_VERSION: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}

#: The highest levels that a cluster may already have although this software does not serve them.
KEPT_FEATURES: dict[str, int] = {TRANSACTION_VERSION: 2}

#: The ranges that a node registers.
NODE_FEATURES: dict[str, FeatureRange] = {
    name: FeatureRange(MINIMUM_METADATA_VERSION if name == METADATA_VERSION else 0, level)
    for name, level in (*SERVED_FEATURES.items(), (KRAFT_VERSION, KRAFT_VERSION_LEVEL))
}


def can_work_at(name: str, level: int, supported: FeatureRange) -> bool:
    """Whether a node with this range can work in a cluster that has the feature at `level`."""
    return supported.min_level <= level <= max(supported.max_level, KEPT_FEATURES.get(name, 0))


def declared_where(
    finalized: Mapping[str, int], features: Mapping[str, FeatureRange]
) -> dict[str, FeatureRange]:
    """The ranges to register with a controller of other software, which demands its finalized levels.

    Kept levels are included only if the cluster has already finalized them, so that no level is raised to one
    that this node does not serve.
    """
    return {
        name: FeatureRange(levels.min_level, level)
        if (level := finalized.get(name, 0)) > levels.max_level and can_work_at(name, level, levels)
        else levels
        for name, levels in features.items()
    }


def merely_kept(features: Mapping[str, int]) -> dict[str, int]:
    """The finalized features whose levels are kept but not served."""
    return {name: level for name, level in features.items() if level > SERVED_FEATURES.get(name, level)}


#: The names of the metadata.version levels.
METADATA_VERSION_NAMES: dict[int, str] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}


#: The levels of metadata.version that added records, or fields of records.
_METADATA_CHANGED_AT = frozenset({8, 11, 13, 14, 15, 17, 23, 30})

#: Eligible leader replicas are written into partitions since 4.0-IV1.
ELR_NEEDS_METADATA_VERSION = 23
#: The levels of other features that a level needs: (feature, level) -> feature -> level.
FEATURE_DEPENDENCIES: dict[tuple[str, int], dict[str, int]] = {
    (ELR_VERSION, 1): {METADATA_VERSION: ELR_NEEDS_METADATA_VERSION}
}


def loses_metadata(old: int, new: int) -> bool:
    """Whether a downgrade of metadata.version from `old` to `new` may lose metadata."""
    return any(new < level <= old for level in _METADATA_CHANGED_AT)


def bootstrap_records(features: Mapping[str, int] = SERVED_FEATURES) -> tuple[object, ...]:
    """The records that a new cluster starts with: metadata.version first, without features at level 0."""
    return tuple(
        m.FeatureLevelRecord(name=name, feature_level=features[name])
        for name in sorted(features, key=lambda name: (name != METADATA_VERSION, name))
        if features[name] > 0
    )
