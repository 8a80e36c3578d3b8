"""AlterConfigs (API key 33): replace all values of a resource; keys not named go back to their defaults.

v2 flexible. Older than IncrementalAlterConfigs and easily misused, but some clients still send it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.events import NewConfigs
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    AlterConfigsRequest,
    versions="0-2",
    needs=[
        partly_on_cluster(AclOperation.ALTER_CONFIGS),
        on_topics(AclOperation.ALTER_CONFIGS),
        on_groups(AclOperation.ALTER_CONFIGS),
    ],
)
async def alter_configs(request: AlterConfigsRequest, ctx: RequestContext) -> AlterConfigsResponse:
    """Each resource succeeds or fails on its own."""
    results = await ctx.node.controller.alter_configs(
        [
            NewConfigs(
                resource.resource_type,
                resource.resource_name,
                tuple((config.name, config.value) for config in resource.configs),
            )
            for resource in request.resources
        ],
        validate_only=request.validate_only,
    )
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=int(result.error),
                error_message=result.message,
                resource_type=result.resource_type,
                resource_name=result.name,
            )
            for result in results
        ]
    )
