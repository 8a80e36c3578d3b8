"""IncrementalAlterConfigs (API key 44): set, delete, append to or subtract from single keys (KIP-339).

v1 flexible. All changes of one resource are made or none. Loggers are changed in this process at once; all
other changes go to the controller and are durable. A broker makes its own checks before it asks the
controller; a listener of controllers asks at once. Who alters loggers needs ALTER_CONFIGS of a broker, and
CLUSTER_ACTION of a listener of controllers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.altering_configs import (
    NEEDS,
    altered_here,
    answered,
    decided_elsewhere,
    denied,
    refusing,
)
from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.broker_loggers import alter_loggers
from pykafka_broker.apis.denials import refusal_of_configs
from pykafka_broker.apis.forwarding import decided
from pykafka_broker.apis.needs import partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import LOGGERS, tell
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.configs import why_malformed
from pykafka_broker.controller.core.events import AlterConfigsResult, ConfigChange, IncrementalAlterConfigs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext


_answer = partial(answered, IncrementalAlterConfigsResponse, AlterConfigsResourceResponse)
_refused = refusing(_answer)


@asks_controller
@handles(IncrementalAlterConfigsRequest, versions="0-1", needs=NEEDS, error_response=_refused)
async def incremental_alter_configs(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> Any:
    """Each resource succeeds or fails on its own."""
    changes = [
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple((config.name, config.config_operation, config.value) for config in resource.configs),
        )
        for resource in request.resources
    ]
    return await decided(
        ctx, lambda: _alter_here(request, changes, ctx), lambda: _pass_on(request, changes, ctx)
    )


async def _alter_here(
    request: IncrementalAlterConfigsRequest, changes: list[ConfigChange], ctx: RequestContext
) -> IncrementalAlterConfigsResponse:
    loggers, kept = _apart(changes)
    refused = denied(((change.resource_type, change.name) for change in kept), ctx)
    results = [
        _alter_loggers(change, loggers, request.validate_only, AclOperation.ALTER_CONFIGS, ctx)
        for change in loggers
    ]
    allowed = [change for change in kept if (change.resource_type, change.name) not in refused]
    if allowed:
        event_of = partial(IncrementalAlterConfigs, validate_only=request.validate_only)
        results += await altered_here(allowed, event_of, ctx)
    return _answer([*results, *refused.values()])


async def _pass_on(
    request: IncrementalAlterConfigsRequest, changes: list[ConfigChange], ctx: RequestContext
) -> Any:
    """The controller of another node decides on all but loggers and changes that this broker refuses."""
    loggers, kept = _apart(changes)
    own = _answer(
        _alter_loggers(change, loggers, request.validate_only, AclOperation.ALTER_CONFIGS, ctx)
        for change in loggers
    )
    response = await decided_elsewhere(request, kept, ctx, _answer)
    if isinstance(response, IncrementalAlterConfigsResponse):
        response.responses = [*own.responses, *response.responses]
    return response


def _apart(changes: Iterable[ConfigChange]) -> tuple[list[ConfigChange], list[ConfigChange]]:
    """Changes of loggers, and changes in the metadata."""
    loggers: list[ConfigChange] = []
    kept: list[ConfigChange] = []
    for change in changes:
        (loggers if change.resource_type == ResourceType.BROKER_LOGGER else kept).append(change)
    return loggers, kept


@asks_controller
@handles(
    IncrementalAlterConfigsRequest,
    versions="0-1",
    needs=[*NEEDS, partly_on_cluster(AclOperation.CLUSTER_ACTION).asked_by_handler()],
    error_response=_refused,
)
async def incremental_alter_configs_on_controller(
    request: IncrementalAlterConfigsRequest, ctx: ControllerContext
) -> IncrementalAlterConfigsResponse:
    """Each resource succeeds or fails on its own. If a key is given twice, the last change counts."""
    changes = [
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple(
                {
                    config.name: (config.name, config.config_operation, config.value)
                    for config in resource.configs
                }.values()
            ),
        )
        for resource in request.resources
    ]
    loggers, kept = _apart(changes)
    of_loggers = [
        _alter_loggers(change, loggers, request.validate_only, AclOperation.CLUSTER_ACTION, ctx)
        for change in loggers
    ]
    refused = denied(((change.resource_type, change.name) for change in kept), ctx)
    allowed = tuple(change for change in kept if (change.resource_type, change.name) not in refused)
    results: tuple[AlterConfigsResult, ...] = await ctx.node.controller.ask(
        IncrementalAlterConfigs(allowed, request.validate_only), requester=ctx.requester
    )
    return _answer([*results, *refused.values(), *of_loggers])


def _alter_loggers(
    change: ConfigChange,
    asked: Sequence[ConfigChange],
    validate_only: bool,
    needed: AclOperation,
    ctx: AdministrationContext,
) -> AlterConfigsResult:
    def refused(error: ErrorCode, message: str | None) -> AlterConfigsResult:
        return AlterConfigsResult(change.resource_type, change.name, error, message)

    if sum(other.name == change.name for other in asked) > 1:
        return refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    denial = refusal_of_configs(ctx, needed, change.resource_type, change.name)
    if denial is not ErrorCode.NONE:
        return refused(denial, denial.message)
    if malformed := why_malformed(change):
        return refused(*malformed)
    try:
        node_id = int(change.name)
    except ValueError:
        return refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {change.name}")
    if node_id != ctx.node.metadata.node_id:
        text = f"Unexpected node id. Expected {ctx.node.metadata.node_id}, but received {change.name}"
        return refused(ErrorCode.INVALID_REQUEST, text)
    try:
        alter_loggers(
            change.changes,
            tell=lambda text: tell(ctx, LOGGERS, text, level=logging.WARNING),
            validate_only=validate_only,
        )
    except KafkaError as error:
        return refused(error.code, error.message)
    return AlterConfigsResult(change.resource_type, change.name)
