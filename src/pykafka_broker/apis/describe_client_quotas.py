"""DescribeClientQuotas (API key 48): the quotas that match a filter of users, client ids and addresses
(KIP-546).

v1 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.client_quotas import matching_quotas
from pykafka_broker.controller.core.events import QuotaFilter
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    """The answer to a refused filter."""
    return DescribeClientQuotasResponse(error_code=int(error.code), error_message=error.message, entries=None)


@handles(
    DescribeClientQuotasRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.DESCRIBE_CONFIGS)],
    error_response=failed,
)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, ctx: RequestContext
) -> DescribeClientQuotasResponse:
    """Answers from this node's metadata. An empty filter matches every entity, or none if it is strict."""
    filters = [QuotaFilter(each.entity_type, each.match_type, each.match) for each in request.components]
    return DescribeClientQuotasResponse(
        error_code=int(ErrorCode.NONE),
        # As in Apache Kafka, the message is empty and not null.
        error_message="",
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in matching_quotas(ctx.node.metadata.image, filters, strict=request.strict)
        ],
    )
