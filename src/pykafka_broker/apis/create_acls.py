"""CreateAcls (API key 30): create ACLs.

v1 pattern types, v2 flexible, v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.acls import need_an_authorizer, refuse_unknown
from pykafka_broker.apis.api import checked, handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME, AclOperation, AclResourceType
from pykafka_broker.authorization.index import Acl
from pykafka_broker.controller.channel import each_result
from pykafka_broker.controller.core.events import AclResult, CreateAcls
from pykafka_broker.protocol.acls import AclPermission, PatternType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    """The answer to a refused request."""
    return _answer([AclResult(error.code, error.explanation)] * len(request.creations))


def refuse_unknown_numbers(request: CreateAclsRequest) -> None:
    """Raise ProtocolError if a number of an ACL is 0."""
    for each in request.creations:
        refuse_unknown(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)


@checked(refuse_unknown_numbers)
@handles(
    CreateAclsRequest,
    versions="1-3",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def create_acls(request: CreateAclsRequest, ctx: AdministrationContext) -> CreateAclsResponse:
    """Each ACL is created or refused on its own; a value that only filters may have refuses the request."""
    need_an_authorizer(ctx, "No Authorizer is configured.")
    if any(map(_is_a_filter, request.creations)):
        # Apache Kafka fails here without an error of its own.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    acls = [_acl(each) for each in request.creations]
    faults = {acl: text for acl in acls if (text := _fault(acl))}
    valid = tuple(acl for acl in acls if acl not in faults)
    event = CreateAcls(valid)
    results = await each_result(event, ctx.node.controller.ask(event, requester=ctx.requester))
    created = dict(zip(valid, results, strict=True))
    refused = {acl: AclResult(ErrorCode.INVALID_REQUEST, text) for acl, text in faults.items()}
    outcomes = created | refused
    return _answer([outcomes[acl] for acl in acls])


def _acl(each: AclCreation) -> Acl:
    return Acl(
        each.resource_type,
        each.resource_name,
        each.resource_pattern_type,
        each.principal,
        each.host,
        each.operation,
        each.permission_type,
    )


def _is_a_filter(each: AclCreation) -> bool:
    return (
        each.resource_type == AclResourceType.ANY
        or each.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or each.operation == AclOperation.ANY
        or each.permission_type == AclPermission.ANY
    )


def _fault(acl: Acl) -> str | None:
    """The fault of an ACL that is found here; the controller finds other ones."""
    if acl.resource_type == AclResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if acl.name else "Invalid empty resource name"


def _answer(results: list[AclResult]) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=int(result.error), error_message=result.message)
            for result in results
        ]
    )
