"""AlterConfigs (API key 33): replace all values of a resource; keys not named go back to their defaults.

v2 flexible. Older than IncrementalAlterConfigs and easily misused, but some clients still send it. A broker
checks what it can before it asks the controller; a listener of controllers asks at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.authorization import refusal_of_configs
from pykafka_broker.apis.broker_part_of_configs import altered_here, refused_here
from pykafka_broker.apis.forwarding import decided, pass_on
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.events import AlterConfigs, AlterConfigsResult, NewConfigs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext


NEEDS = [
    partly_on_cluster(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_topics(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_groups(AclOperation.ALTER_CONFIGS).asked_by_handler(),
]


def _refused(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return _answer(
        AlterConfigsResult(resource.resource_type, resource.resource_name, error.code, error.message)
        for resource in request.resources
    )


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
        ctx, lambda: _alter_here(request, resources, ctx), lambda: _pass_on(request, resources, ctx)
    )


async def _alter_here(
    request: AlterConfigsRequest, resources: list[NewConfigs], ctx: RequestContext
) -> AlterConfigsResponse:
    denied = _denied(request, ctx)
    allowed = [each for each in resources if (each.resource_type, each.name) not in denied]
    event_of = partial(AlterConfigs, validate_only=request.validate_only)
    results = await altered_here(allowed, event_of, ctx)
    return _answer([*results, *denied.values()])


def _denied(
    request: AlterConfigsRequest, ctx: AdministrationContext
) -> dict[tuple[int, str], AlterConfigsResult]:
    """The answers for resources whose configs the client may not alter. Of those that are given twice nothing
    is altered anyway.
    """
    given = Counter((each.resource_type, each.resource_name) for each in request.resources)
    # The loggers of a broker are no resource that this API knows.
    once = [key for key, times in given.items() if times == 1 and key[0] != ResourceType.BROKER_LOGGER]
    refusals = {key: refusal_of_configs(ctx, AclOperation.ALTER_CONFIGS, *key) for key in once}
    return {key: AlterConfigsResult(*key, error, error.message) for key, error in refusals.items() if error}


async def _pass_on(request: AlterConfigsRequest, resources: list[NewConfigs], ctx: RequestContext) -> Any:
    """The controller of another node decides on what this broker does not refuse."""
    results = refused_here(resources, ctx)
    left = [each for each in request.resources if (each.resource_type, each.resource_name) not in results]
    if not left:
        return _answer(results[each.resource_type, each.name] for each in resources)
    rest = AlterConfigsRequest(resources=left, validate_only=request.validate_only)
    answer = await pass_on(rest, ctx, _refused)
    if not isinstance(answer, AlterConfigsResponse):
        return answer
    answered = {(each.resource_type, each.resource_name): each for each in answer.responses}
    own = _answer(results.values()).responses
    answered.update({(each.resource_type, each.resource_name): each for each in own})
    unanswered = _refused(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)).responses
    return AlterConfigsResponse(
        throttle_time_ms=answer.throttle_time_ms,
        responses=[answered.get((each.resource_type, each.resource_name), each) for each in unanswered],
    )


@asks_controller
@handles(AlterConfigsRequest, versions="0-2", needs=NEEDS, error_response=_refused)
async def alter_configs_on_controller(
    request: AlterConfigsRequest, ctx: ControllerContext
) -> AlterConfigsResponse:
    """Each resource succeeds or fails on its own. Of a key that is given twice the last value counts."""
    denied = _denied(request, ctx)
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    resources = tuple(
        NewConfigs(
            resource.resource_type,
            resource.resource_name,
            tuple({config.name: config.value for config in resource.configs}.items()),
        )
        for resource in request.resources
        if resource.resource_type != ResourceType.BROKER_LOGGER
        and (resource.resource_type, resource.resource_name) not in denied
    )
    results: tuple[AlterConfigsResult, ...] = await ctx.node.controller.ask(
        AlterConfigs(resources, request.validate_only), requester=ctx.requester
    )
    error, text = ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."
    refused = (AlterConfigsResult(each.resource_type, each.resource_name, error, text) for each in loggers)
    of_loggers = {(each.resource_type, each.resource_name) for each in loggers}
    kept = (result for key, result in denied.items() if key not in of_loggers)
    return _answer([*refused, *kept, *results])


def _answer(results: Iterable[AlterConfigsResult]) -> AlterConfigsResponse:
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
