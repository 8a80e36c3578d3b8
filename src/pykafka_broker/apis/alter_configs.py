"""AlterConfigs (API key 33): replace all values of a resource; keys not named go back to their defaults.

v2 flexible. Older than IncrementalAlterConfigs and easily misused, but some clients still send it. A broker
makes its own checks before it asks the controller; a listener of controllers asks at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.altering_configs import (
    NEEDS,
    Resource,
    altered_here,
    answered,
    decided_elsewhere,
    denied,
    refusing,
)
from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.forwarding import decided
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.events import AlterConfigs, AlterConfigsResult, NewConfigs
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext, RequestContext


_answer = partial(answered, AlterConfigsResponse, AlterConfigsResourceResponse)
_refused = refusing(_answer)


@asks_controller
@handles(AlterConfigsRequest, versions="0-2", needs=NEEDS, error_response=_refused)
async def alter_configs(request: AlterConfigsRequest, ctx: RequestContext) -> Any:
    """Each resource succeeds or fails on its own."""
    resources = [
        NewConfigs(
            resource.resource_type,
            resource.resource_name,
            tuple((config.name, config.value) for config in resource.configs),
        )
        for resource in request.resources
    ]
    return await decided(
        ctx,
        lambda: _alter_here(request, resources, ctx),
        lambda: decided_elsewhere(request, resources, ctx, _answer),
    )


async def _alter_here(
    request: AlterConfigsRequest, resources: list[NewConfigs], ctx: RequestContext
) -> AlterConfigsResponse:
    refused = denied(_resources(request), ctx)
    allowed = [each for each in resources if (each.resource_type, each.name) not in refused]
    event_of = partial(AlterConfigs, validate_only=request.validate_only)
    results = await altered_here(allowed, event_of, ctx)
    return _answer([*results, *refused.values()])


def _resources(request: AlterConfigsRequest) -> list[Resource]:
    """The resources of the request, without broker loggers, which this API does not support."""
    resources = [(each.resource_type, each.resource_name) for each in request.resources]
    return [resource for resource in resources if resource[0] != ResourceType.BROKER_LOGGER]


@asks_controller
@handles(AlterConfigsRequest, versions="0-2", needs=NEEDS, error_response=_refused)
async def alter_configs_on_controller(
    request: AlterConfigsRequest, ctx: ControllerContext
) -> AlterConfigsResponse:
    """Each resource succeeds or fails on its own. If a key is given twice, the last value counts."""
    refused = denied(_resources(request), ctx)
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    resources = tuple(
        NewConfigs(
            resource.resource_type,
            resource.resource_name,
            tuple({config.name: config.value for config in resource.configs}.items()),
        )
        for resource in request.resources
        if resource.resource_type != ResourceType.BROKER_LOGGER
        and (resource.resource_type, resource.resource_name) not in refused
    )
    results: tuple[AlterConfigsResult, ...] = await ctx.node.controller.ask(
        AlterConfigs(resources, request.validate_only), requester=ctx.requester
    )
    error, text = ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."
    unknown = (AlterConfigsResult(each.resource_type, each.resource_name, error, text) for each in loggers)
    return _answer([*unknown, *refused.values(), *results])
