"""Whether share groups (KIP-932) are served: the first check of the APIs of these groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.features import SHARE_VERSION

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def serves_share_groups(ctx: RequestContext) -> bool:
    """Whether the finalized level of share.version has share groups."""
    return ctx.node.metadata.image.features.get(SHARE_VERSION, 0) >= 1
