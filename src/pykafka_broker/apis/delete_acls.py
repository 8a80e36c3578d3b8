"""DeleteAcls (API key 31): delete the ACLs that match filters.

v1 pattern types, v2 flexible, v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.acls import filter_of, need_an_authorizer, refuse_unknown_filter
from pykafka_broker.apis.api import checked, handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.authorization.index import Acl
from pykafka_broker.controller.core.events import DeleteAcls, DeleteAclsResult
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    """The answer to a refused request."""
    result = DeleteAclsResult(error=error.code, message=error.explanation)
    return DeleteAclsResponse(filter_results=[_filter_result(result) for _ in request.filters])


def refuse_unknown_numbers(request: DeleteAclsRequest) -> None:
    """Raise ProtocolError if a number of a filter is 0."""
    for each in request.filters:
        refuse_unknown_filter(each)


@checked(refuse_unknown_numbers)
@handles(
    DeleteAclsRequest,
    versions="1-3",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def delete_acls(request: DeleteAclsRequest, ctx: AdministrationContext) -> DeleteAclsResponse:
    """Each filter succeeds or fails on its own."""
    filters = tuple(filter_of(each) for each in request.filters)
    need_an_authorizer(ctx, "No Authorizer is configured.")
    results = await ctx.node.controller.ask(DeleteAcls(filters), requester=ctx.requester)
    return DeleteAclsResponse(filter_results=[_filter_result(result) for result in results])


def _filter_result(result: DeleteAclsResult) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=int(result.error),
        error_message=result.message,
        matching_acls=[_matching_acl(acl) for acl in result.acls],
    )


def _matching_acl(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=int(ErrorCode.NONE),
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
