"""All families, in the order of the page."""

from __future__ import annotations

from pykafka_broker.metrics import (
    broker,
    connections,
    controller,
    fetchers,
    groups,
    partitions,
    process,
    pushed,
    requests,
    security,
    topics,
)
from pykafka_broker.metrics.family import Family

FAMILIES: tuple[Family, ...] = (
    *topics.FAMILIES,
    *requests.FAMILIES,
    *partitions.FAMILIES,
    *fetchers.FAMILIES,
    *controller.FAMILIES,
    *groups.FAMILIES,
    *connections.FAMILIES,
    *security.FAMILIES,
    *broker.FAMILIES,
    *pushed.FAMILIES,
    *process.FAMILIES,
)
