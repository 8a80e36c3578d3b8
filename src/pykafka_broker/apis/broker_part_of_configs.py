"""The part of a broker in a change of configs whose rest the active controller of another node decides.

Kafka's ConfigAdminManager: what is malformed, of another broker, or not for this broker's configuration, is
refused here; the controller gets what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    from pykafka_broker.apis.context import RequestContext

#: Type and name.
Resource = tuple[int, str]


def refused_here(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    """The results of the resources that the controller of another node is not asked about."""
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
    """A result for each resource, of which the controller of this node is asked about all that are not
    malformed.
    """
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
    """The error in the values that this broker, or all brokers, would have."""
    if change.resource_type != ResourceType.BROKER:
        return None
    configs, current = ctx.node.configs, ctx.node.metadata.image.config(ResourceType.BROKER, change.name)
    try:
        validate_broker_configs(change.name, values_after(TableRules(configs), change, current), configs)
    except KafkaError as error:
        return error.code, error.explanation
    return None
