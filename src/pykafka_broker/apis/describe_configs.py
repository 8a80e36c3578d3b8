"""DescribeConfigs (API key 32): every key of a resource with its value and its source.

v1 sources and synonyms (KIP-226), v3 types and documentation (KIP-569), v4 flexible. Keys that are not set
are listed too, with their defaults: admin tools read, change and write back all values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.broker_loggers import logger_levels
from pykafka_broker.apis.denials import refusal_of_configs
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.config.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
    parse_broker_id,
)
from pykafka_broker.config.keys import ConfigType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    """The answer to a request that failed as a whole."""
    return DescribeConfigsResponse(results=[_refused(resource, error.code) for resource in request.resources])


@handles(
    DescribeConfigsRequest,
    versions="1-4",
    needs=[
        partly_on_cluster(AclOperation.DESCRIBE_CONFIGS).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE_CONFIGS).asked_by_handler(),
        on_groups(AclOperation.DESCRIBE_CONFIGS).asked_by_handler(),
    ],
    error_response=failed,
)
def describe_configs(request: DescribeConfigsRequest, ctx: AdministrationContext) -> DescribeConfigsResponse:
    """Describe each resource, which succeeds or fails on its own. Resources whose configs the client may not
    describe come last.
    """
    refusals = [
        refusal_of_configs(ctx, AclOperation.DESCRIBE_CONFIGS, each.resource_type, each.resource_name)
        for each in request.resources
    ]
    results = []
    for resource, refusal in zip(request.resources, refusals, strict=True):
        if refusal is not ErrorCode.NONE:
            continue
        entries: Iterable[ConfigEntry]
        try:
            entries, error, message = _entries(resource, ctx), ErrorCode.NONE, ""
        except KafkaError as refused:
            entries, error, message = (), refused.code, refused.message
        wanted = set(resource.configuration_keys or ())
        results.append(
            DescribeConfigsResult(
                error_code=int(error),
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_shown(entry, request) for entry in entries if not wanted or entry.name in wanted],
            )
        )
    results += [
        _refused(resource, refusal)
        for resource, refusal in zip(request.resources, refusals, strict=True)
        if refusal is not ErrorCode.NONE
    ]
    return DescribeConfigsResponse(results=results)


def _refused(resource: DescribeConfigsResource, error: ErrorCode) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=int(error),
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _entries(resource: DescribeConfigsResource, ctx: AdministrationContext) -> Iterable[ConfigEntry]:
    """The entries of a resource.

    Raises:
        KafkaError: the resource or its type does not exist.
    """
    kind, name = resource.resource_type, resource.resource_name
    configs = ctx.node.configs
    if kind == ResourceType.TOPIC:
        why = why_invalid_name(name)
        if why is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
        if name not in ctx.node.metadata.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(configs, ctx.node.metadata.image.config(ResourceType.TOPIC, name))
    if kind == ResourceType.BROKER:
        return describe_broker(configs, name)
    if kind == ResourceType.BROKER_LOGGER:
        return _loggers(name, ctx)
    if kind == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(ctx.node.metadata.image.config(ResourceType.CLIENT_METRICS, name))
    if kind == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(configs, ctx.node.metadata.image.config(ResourceType.GROUP, name))
    raise KafkaError(ErrorCode.INVALID_REQUEST)


def _loggers(name: str, ctx: AdministrationContext) -> list[ConfigEntry]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if parse_broker_id(name) != ctx.node.metadata.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {ctx.node.metadata.node_id} but received {name}",
        )
    return [
        ConfigEntry(
            logger, level, False, ConfigSource.DYNAMIC_BROKER_LOGGER, False, (), ConfigType.UNKNOWN, ""
        )
        for logger, level in logger_levels().items()
    ]


def _shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=int(entry.source),
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=int(synonym.source))
            for synonym in synonyms
        ],
        config_type=int(entry.type),
        # Loggers have no documentation: their answer is always an empty text.
        documentation=entry.documentation
        if request.include_documentation or not entry.documentation
        else None,
    )
