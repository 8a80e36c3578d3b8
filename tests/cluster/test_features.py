"""The levels of features that a node declares, and those that it can work at."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.features import KEPT_FEATURES, NODE_FEATURES, can_work_at, declared_where
from pykafka_broker.cluster.image import FeatureRange

SHARE = "share.version"


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Software to come serves level 2 of a feature, which does this node no harm."""
    monkeypatch.setitem(KEPT_FEATURES, SHARE, 2)


def test_a_level_that_is_merely_kept_is_declared_where_the_cluster_has_it() -> None:
    """Apache Kafka's controller refused a broker of ours in every cluster of 4.2 or later."""
    assert NODE_FEATURES[SHARE] == FeatureRange(0, 1)
    assert declared_where({SHARE: 2}, NODE_FEATURES) == {**NODE_FEATURES, SHARE: FeatureRange(0, 2)}
    assert declared_where({SHARE: 1}, NODE_FEATURES) == NODE_FEATURES
    assert declared_where({}, NODE_FEATURES) == NODE_FEATURES


def test_a_level_that_this_node_cannot_work_at_is_not_declared() -> None:
    assert not can_work_at(SHARE, 3, NODE_FEATURES[SHARE])
    assert declared_where({SHARE: 3}, NODE_FEATURES) == NODE_FEATURES
