"""The part of a broker in a change of configs whose rest the active controller of another node decides.

Kafka's ConfigAdminManager: what is malformed, of another broker, or not for this broker's configuration, is
refused here; the controller gets what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pykafka_broker.cluster.configs import refused_by_broker, values_after
from pykafka_broker.cluster.events import AlterConfigsResult, ConfigChange, NewConfigs
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: Type and name.
Resource = tuple[int, str]


def refused_here(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    """The results of the resources that the controller is not asked about."""
    times = Counter((change.resource_type, change.name) for change in changes)
    refused: dict[Resource, AlterConfigsResult] = {}
    for change in changes:
        resource = change.resource_type, change.name
        if times[resource] > 1:
            text = "Each resource must appear at most once."
            refused[resource] = AlterConfigsResult(*resource, ErrorCode.INVALID_REQUEST, text)
        elif why := refused_by_broker(change, ctx.node.metadata.node_id) or _invalid(change, ctx):
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
