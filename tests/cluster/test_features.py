"""The levels of features that a node declares, and those that it can work at."""

from __future__ import annotations

from pykafka_broker.cluster.features import NODE_FEATURES, can_work_at, declared_where
from pykafka_broker.cluster.image import FeatureRange

SHARE = "share.version"


def test_a_level_that_is_merely_kept_is_declared_where_the_cluster_has_it() -> None:
    """Apache Kafka's controller refused a broker of ours in every cluster of 4.2 or later."""
    assert NODE_FEATURES[SHARE] == FeatureRange(0, 0)
    assert declared_where({SHARE: 1}, NODE_FEATURES) == {**NODE_FEATURES, SHARE: FeatureRange(0, 1)}
    assert declared_where({}, NODE_FEATURES) == NODE_FEATURES


def test_a_level_that_this_node_cannot_work_at_is_not_declared() -> None:
    assert not can_work_at(SHARE, 2, NODE_FEATURES[SHARE])
    assert declared_where({SHARE: 2}, NODE_FEATURES) == NODE_FEATURES
