"""Whether consumer groups of KIP-848 are served: a check of the APIs of these groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.features import GROUP_VERSION

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def serves_consumer_groups(ctx: RequestContext) -> bool:
    """Whether the consumer protocol is enabled."""
    protocols = ctx.node.configs.current["group.coordinator.rebalance.protocols"]
    return ctx.node.metadata.image.features.get(GROUP_VERSION, 0) >= 1 and "consumer" in protocols
