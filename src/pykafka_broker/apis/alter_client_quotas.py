"""AlterClientQuotas (API key 49): set or remove quotas of users, client ids and addresses (KIP-546).

v1 flexible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import AlterClientQuotas, QuotaAlteration
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    """The answer to a refused request."""
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(error.code),
                error_message=error.message,
                entity=_entity((part.entity_type, part.entity_name) for part in entry.entity),
            )
            for entry in request.entries
        ]
    )


@handles(
    AlterClientQuotasRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.ALTER_CONFIGS)],
    error_response=failed,
    forwarded=True,
)
async def alter_client_quotas(
    request: AlterClientQuotasRequest, ctx: AdministrationContext
) -> AlterClientQuotasResponse:
    """Each entity succeeds or fails on its own. If an entity names a type twice, the last name counts."""
    alterations = tuple(
        QuotaAlteration(
            tuple(sorted({part.entity_type: part.entity_name for part in entry.entity}.items())),
            tuple((op.key, None if op.remove else op.value) for op in entry.ops),
        )
        for entry in request.entries
    )
    event = AlterClientQuotas(alterations, validate_only=request.validate_only)
    results = await ctx.node.controller.ask(event, requester=ctx.requester)
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(result.error), error_message=result.message, entity=_entity(result.entity)
            )
            for result in results
        ]
    )


def _entity(parts: Iterable[tuple[str, str | None]]) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
