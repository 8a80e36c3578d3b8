"""IncrementalAlterConfigs (API key 44): set, delete, append to or subtract from single keys (KIP-339).

v1 flexible. All changes of one resource are made or none. Loggers are changed in this process at once; all
other changes go to the controller and are durable. A broker makes its own checks before it asks the
controller; a listener of controllers asks at once. Who alters loggers needs ALTER_CONFIGS of a broker, and
CLUSTER_ACTION of a listener of controllers.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.altering_configs import GIVEN_TWICE, NEEDS, AlteringApi, loggers_apart
from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.apis.broker_loggers import alter_loggers
from pykafka_broker.apis.denials import refusal_of_configs
from pykafka_broker.apis.needs import partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import LOGGERS, tell
from pykafka_broker.cluster.broker_names import broker_id_of
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


_api = AlteringApi(
    IncrementalAlterConfigsResponse,
    AlterConfigsResourceResponse,
    ConfigChange,
    ("name", "config_operation", "value"),
    IncrementalAlterConfigs,
)


@asks_controller
@handles(IncrementalAlterConfigsRequest, versions="0-1", needs=NEEDS, error_response=_api.refused)
async def incremental_alter_configs(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> Any:
    """Each resource succeeds or fails on its own."""
    loggers, kept = loggers_apart(_api.changes(request))
    of_loggers = _alter_loggers(loggers, request, AclOperation.ALTER_CONFIGS, ctx)
    return await _api.altered_by_broker(request, kept, ctx, of_loggers)


@asks_controller
@handles(
    IncrementalAlterConfigsRequest,
    versions="0-1",
    needs=[*NEEDS, partly_on_cluster(AclOperation.CLUSTER_ACTION).asked_by_handler()],
    error_response=_api.refused,
)
async def incremental_alter_configs_on_controller(
    request: IncrementalAlterConfigsRequest, ctx: ControllerContext
) -> IncrementalAlterConfigsResponse:
    """Each resource succeeds or fails on its own. If a key is given twice, the last change counts."""
    loggers, kept = loggers_apart(_api.changes(request, last_counts=True))
    of_loggers = _alter_loggers(loggers, request, AclOperation.CLUSTER_ACTION, ctx)
    return _api.answer([*await _api.altered_on_controller(request, kept, ctx), *of_loggers])


def _alter_loggers(
    changes: Sequence[ConfigChange],
    request: IncrementalAlterConfigsRequest,
    needed: AclOperation,
    ctx: AdministrationContext,
) -> list[AlterConfigsResult]:
    times = Counter(change.name for change in changes)
    return [_alter_logger(change, times, request.validate_only, needed, ctx) for change in changes]


def _alter_logger(
    change: ConfigChange,
    times: Mapping[str, int],
    validate_only: bool,
    needed: AclOperation,
    ctx: AdministrationContext,
) -> AlterConfigsResult:
    def refused(error: ErrorCode, message: str | None) -> AlterConfigsResult:
        return AlterConfigsResult(change.resource_type, change.name, error, message)

    if times[change.name] > 1:
        return refused(ErrorCode.INVALID_REQUEST, GIVEN_TWICE)
    denial = refusal_of_configs(ctx, needed, change.resource_type, change.name)
    if denial is not ErrorCode.NONE:
        # Apache Kafka's controllers say this in words, its brokers do not.
        return refused(denial, denial.message if needed is AclOperation.CLUSTER_ACTION else None)
    if malformed := why_malformed(change):
        return refused(*malformed)
    node_id = broker_id_of(change.name)
    if node_id is None:
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
