"""DescribeAcls (API key 29): the ACLs that match a filter.

v1 pattern types, v2 flexible, v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.acls import filter_of, need_an_authorizer, refuse_unknown_filter
from pykafka_broker.apis.api import checked, handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.acls import matching_acls
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(_request: DescribeAclsRequest, error: KafkaError) -> DescribeAclsResponse:
    """The answer to a refused request."""
    return DescribeAclsResponse(error_code=int(error.code), error_message=error.explanation, resources=[])


@checked(refuse_unknown_filter)
@handles(
    DescribeAclsRequest,
    versions="1-3",
    needs=[on_cluster(AclOperation.DESCRIBE)],
    error_response=failed,
)
def describe_acls(request: DescribeAclsRequest, ctx: AdministrationContext) -> DescribeAclsResponse:
    """Answers from the metadata of this node; ACLs with the same pattern are grouped."""
    wanted = filter_of(request)
    need_an_authorizer(ctx, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in matching_acls(ctx.node.metadata.image, wanted):
        described = AclDescription(
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        resources.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(described)
    return DescribeAclsResponse(
        error_code=int(ErrorCode.NONE),
        resources=[
            DescribeAclsResource(
                resource_type=resource_type, resource_name=name, pattern_type=pattern_type, acls=acls
            )
            for (resource_type, name, pattern_type), acls in resources.items()
        ],
    )
