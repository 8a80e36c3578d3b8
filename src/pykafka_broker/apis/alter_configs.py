"""AlterConfigs (API key 33): replace all values of a resource; keys not named go back to their defaults.

v2 flexible. Older than IncrementalAlterConfigs and easily misused, but some clients still send it. A broker
makes its own checks before it asks the controller; a listener of controllers asks at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.altering_configs import NEEDS, AlteringApi, loggers_apart
from pykafka_broker.apis.api import asks_controller, handles
from pykafka_broker.controller.core.events import AlterConfigs, AlterConfigsResult, NewConfigs
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext, RequestContext


_api = AlteringApi(
    AlterConfigsResponse, AlterConfigsResourceResponse, NewConfigs, ("name", "value"), AlterConfigs
)


@asks_controller
@handles(AlterConfigsRequest, versions="0-2", needs=NEEDS, error_response=_api.refused)
async def alter_configs(request: AlterConfigsRequest, ctx: RequestContext) -> Any:
    """Each resource succeeds or fails on its own."""
    return await _api.altered_by_broker(request, _api.changes(request), ctx)


@asks_controller
@handles(AlterConfigsRequest, versions="0-2", needs=NEEDS, error_response=_api.refused)
async def alter_configs_on_controller(
    request: AlterConfigsRequest, ctx: ControllerContext
) -> AlterConfigsResponse:
    """Each resource succeeds or fails on its own. If a key is given twice, the last value counts."""
    loggers, kept = loggers_apart(_api.changes(request, last_counts=True))
    results = await _api.altered_on_controller(request, kept, ctx)
    error, text = ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."
    unknown = (AlterConfigsResult(each.resource_type, each.name, error, text) for each in loggers)
    return _api.answer([*unknown, *results])
