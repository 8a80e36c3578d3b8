"""Whether this version can work at the finalized feature levels of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pykafka_broker.cluster.features import NODE_FEATURES, can_work_at, merely_kept
from pykafka_broker.cluster.image import CorruptMetadataError

logger = logging.getLogger("org.apache.kafka.image.loader.MetadataLoader")


def check_features(levels: Mapping[str, int]) -> None:
    """Refuse finalized levels that this version cannot work at; warn about levels that it only keeps.

    Raises:
        CorruptMetadataError: this version cannot work at these levels.
    """
    for name, level in levels.items():
        known = NODE_FEATURES.get(name)
        if known is None or not can_work_at(name, level, known):
            served = "does not know it" if known is None else f"serves {known.min_level} to {known.max_level}"
            raise CorruptMetadataError(f"the cluster has {name} at level {level}, this version {served}")
    if kept := merely_kept(levels):
        logger.warning(
            "The cluster has features that this version does not serve: %s. "
            "Their levels and their records are kept as they are",
            ", ".join(f"{name} at level {level}" for name, level in sorted(kept.items())),
        )
