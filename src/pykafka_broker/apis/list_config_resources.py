"""ListConfigResources (API key 74): which resources have a configuration.

v0 client metrics only (it was ListClientMetricsResources, KIP-714), v1 any type, or all if none is named
(KIP-1142).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

LISTED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def failed(_request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    """The answer to a request that failed as a whole."""
    return ListConfigResourcesResponse(error_code=int(error.code), config_resources=[])


@handles(
    ListConfigResourcesRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.DESCRIBE_CONFIGS)],
    error_response=failed,
)
def list_config_resources(
    request: ListConfigResourcesRequest, ctx: RequestContext
) -> ListConfigResourcesResponse:
    """List all topics and brokers, and groups and client metrics with a configuration."""
    asked: Iterable[int] = (ResourceType.CLIENT_METRICS,) if ctx.version == 0 else request.resource_types
    kinds = list(dict.fromkeys(asked)) or list(LISTED)
    if any(kind not in LISTED for kind in kinds):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), config_resources=[])
    return ListConfigResourcesResponse(
        error_code=0,
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind in kinds
            for name in _names(ResourceType(kind), ctx)
        ],
    )


def _names(kind: ResourceType, ctx: RequestContext) -> Iterable[str]:
    image = ctx.node.metadata.image
    if kind is ResourceType.TOPIC:
        return image.topics
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        # Including fenced brokers, as in Apache Kafka.
        metadata = ctx.node.metadata
        return [str(each) for each in sorted(image.brokers) if metadata.advertised(each, ctx.connection)]
    return image.configs_of(kind)
