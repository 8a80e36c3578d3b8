"""UpdateFeatures (API key 57): raise or lower the finalized levels of features (KIP-584), all or none.

v0 flexible, v1 validation only and kinds of downgrades (KIP-778), v2 no results per feature. As in Apache
Kafka, `allow_downgrade` of v0 has no effect: only later versions can lower a level. An error is always that
of the whole request, even in versions with results per feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import FeatureUpdate, UpdateFeatures
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

FIRST_VERSION_WITHOUT_RESULTS = 2


def failed(_request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    """The answer to a failed request: no level changes."""
    return UpdateFeaturesResponse(error_code=int(error.code), error_message=error.message, results=[])


@handles(
    UpdateFeaturesRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def update_features(
    request: UpdateFeaturesRequest, ctx: AdministrationContext
) -> UpdateFeaturesResponse:
    """Change the levels. The request's own timeout is ignored, as in Apache Kafka."""
    updates = tuple(
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    )
    event = UpdateFeatures(updates, request.validate_only)
    await ctx.node.controller.ask(event, requester=ctx.requester)
    return UpdateFeaturesResponse(
        error_code=int(ErrorCode.NONE),
        results=[
            UpdatableFeatureResult(
                feature=update.feature, error_code=int(ErrorCode.NONE), error_message="NONE"
            )
            for update in (() if ctx.version >= FIRST_VERSION_WITHOUT_RESULTS else request.feature_updates)
        ],
    )
