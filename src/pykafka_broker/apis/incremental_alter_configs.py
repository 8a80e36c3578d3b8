"""IncrementalAlterConfigs (API key 44): set, delete, append to or subtract from single keys (KIP-339).

v1 flexible. All changes of one resource are made or none. Loggers are changed in this process at once;
everything else goes to the controller and is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.broker_loggers import alter_loggers
from pykafka_broker.cluster.events import AlterConfigsResult, ConfigChange
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.describe import parse_broker_id
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(IncrementalAlterConfigsRequest, versions="0-1")
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Each resource succeeds or fails on its own."""
    changes = [
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple((config.name, config.config_operation, config.value) for config in resource.configs),
        )
        for resource in request.resources
    ]
    is_logger = ResourceType.BROKER_LOGGER
    results = [
        _alter_loggers(change, request.validate_only, ctx)
        for change in changes
        if change.resource_type == is_logger
    ]
    kept = [change for change in changes if change.resource_type != is_logger]
    if kept:
        results += await ctx.node.controller.incremental_alter_configs(
            kept, validate_only=request.validate_only
        )
    return IncrementalAlterConfigsResponse(
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


def _alter_loggers(change: ConfigChange, validate_only: bool, ctx: RequestContext) -> AlterConfigsResult:
    try:
        if parse_broker_id(change.name) != ctx.node.node_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {ctx.node.node_id}, but received {change.name}",
            )
        alter_loggers(change.changes, validate_only=validate_only)
    except KafkaError as error:
        return AlterConfigsResult(change.resource_type, change.name, error.code, error.message)
    return AlterConfigsResult(change.resource_type, change.name)
