"""DescribeAcls (API key 29): the access rules that match a filter.

v1 pattern types, v2 flexible, v3 user resources.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message(api_key=29, versions="1-3", flexible="2+", listeners="broker controller")
class DescribeAclsRequest:
    resource_type_filter: int = i8()
    resource_name_filter: str | None = string(nullable=True)
    pattern_type_filter: int = i8(default=3)
    principal_filter: str | None = string(nullable=True)
    host_filter: str | None = string(nullable=True)
    operation: int = i8()
    permission_type: int = i8()


@message()
class AclDescription:
    principal: str = string()
    host: str = string()
    operation: int = i8()
    permission_type: int = i8()


@message()
class DescribeAclsResource:
    resource_type: int = i8()
    resource_name: str = string()
    pattern_type: int = i8(default=3)
    acls: list[AclDescription] = array(AclDescription)


@message(api_key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
