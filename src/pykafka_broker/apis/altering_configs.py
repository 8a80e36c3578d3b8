"""The common part of AlterConfigs and IncrementalAlterConfigs: a broker's refusals and answers.

As in Kafka's ConfigAdminManager, malformed changes, changes of another broker, and values that this broker's
configuration does not allow are refused here; the controller gets the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pykafka_broker.apis.denials import refusal_of_configs
from pykafka_broker.apis.forwarding import pass_on
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.configs import refused_by_broker, values_after
from pykafka_broker.controller.core.events import (
    AlterConfigs,
    AlterConfigsResult,
    ConfigChange,
    IncrementalAlterConfigs,
    NewConfigs,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, RequestContext

Response = TypeVar("Response")
#: Type and name.
Resource = tuple[int, str]

NEEDS = [
    partly_on_cluster(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_topics(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_groups(AclOperation.ALTER_CONFIGS).asked_by_handler(),
]


def denied(resources: Iterable[Resource], ctx: AdministrationContext) -> dict[Resource, AlterConfigsResult]:
    """The results of resources whose configs the client may not alter, except those given twice, which are
    refused anyway.
    """
    once = [resource for resource, times in Counter(resources).items() if times == 1]
    refusals = {resource: refusal_of_configs(ctx, AclOperation.ALTER_CONFIGS, *resource) for resource in once}
    return {key: AlterConfigsResult(*key, error, error.message) for key, error in refusals.items() if error}


def answered(
    response: Callable[..., Response], resource: type[Any], results: Iterable[AlterConfigsResult]
) -> Response:
    """The response of an API, whose class for one resource is `resource`."""
    return response(
        responses=[
            resource(
                error_code=int(result.error),
                error_message=result.message,
                resource_type=result.resource_type,
                resource_name=result.name,
            )
            for result in results
        ]
    )


def refusing(
    answer: Callable[[Iterable[AlterConfigsResult]], Response],
) -> Callable[[Any, KafkaError], Response]:
    """Makes the `error_response` of an API: all resources are refused with an error."""

    def refused(request: Any, error: KafkaError) -> Response:
        asked = [(each.resource_type, each.resource_name) for each in request.resources]
        return answer(AlterConfigsResult(*resource, error.code, error.message) for resource in asked)

    return refused


async def decided_elsewhere(
    request: Any,
    changes: Sequence[ConfigChange | NewConfigs],
    ctx: RequestContext,
    answer: Callable[[Iterable[AlterConfigsResult]], Any],
) -> Any:
    """The response to `changes`: those not refused here go to the controller of another node; an error
    response if the controller does not answer.
    """
    resources = [(change.resource_type, change.name) for change in changes]
    own = refused_here(changes, ctx)

    left = set(resources) - own.keys()
    if not left:
        return answer(own[resource] for resource in resources)
    rest = [each for each in request.resources if (each.resource_type, each.resource_name) in left]
    response = await pass_on(
        type(request)(resources=rest, validate_only=request.validate_only), ctx, refusing(answer)
    )
    known = answer(own.values())
    if not isinstance(response, type(known)):
        return response
    answers = [*response.responses, *known.responses]
    found = {(each.resource_type, each.resource_name): each for each in answers}
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    missing = answer(AlterConfigsResult(*resource, unknown, unknown.message) for resource in resources)
    response.responses = [
        found.get((each.resource_type, each.resource_name), each) for each in missing.responses
    ]
    return response


def refused_here(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    """The results of the resources that are refused here and not sent to the controller of another node."""
    refused = _malformed(changes, ctx)
    for change in changes:
        resource = change.resource_type, change.name
        if resource not in refused and (why := _invalid(change, ctx)):
            refused[resource] = AlterConfigsResult(*resource, *why)
    return refused


async def altered_here(
    changes: Sequence[ConfigChange | NewConfigs],
    event_of: Callable[[tuple[Any, ...]], AlterConfigs | IncrementalAlterConfigs],
    ctx: RequestContext,
) -> list[AlterConfigsResult]:
    """A result for each resource; the controller of this node decides on all that are not malformed."""
    results = _malformed(changes, ctx)
    left = tuple(change for change in changes if (change.resource_type, change.name) not in results)
    if left:
        event = event_of(left)
        for result in await each_result(event, ctx.node.controller.ask(event, requester=ctx.requester)):
            results[result.resource_type, result.name] = result
    return [results[change.resource_type, change.name] for change in changes]


def _malformed(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    times = Counter((change.resource_type, change.name) for change in changes)
    refused: dict[Resource, AlterConfigsResult] = {}
    for change in changes:
        resource = change.resource_type, change.name
        if times[resource] > 1:
            text = "Each resource must appear at most once."
            refused[resource] = AlterConfigsResult(*resource, ErrorCode.INVALID_REQUEST, text)
        elif why := refused_by_broker(change, ctx.node.metadata.node_id):
            refused[resource] = AlterConfigsResult(*resource, *why)
    return refused


def _invalid(change: ConfigChange | NewConfigs, ctx: RequestContext) -> tuple[ErrorCode, str | None] | None:
    """The error in the values that this broker, or all brokers, would have after the change."""
    if change.resource_type != ResourceType.BROKER:
        return None
    configs, current = ctx.node.configs, ctx.node.metadata.image.config(ResourceType.BROKER, change.name)
    try:
        validate_broker_configs(change.name, values_after(TableRules(configs), change, current), configs)
    except KafkaError as error:
        return error.code, error.explanation
    return None
