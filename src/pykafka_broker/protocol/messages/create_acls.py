"""CreateAcls (API key 30): add access rules.

v1 pattern types, v2 flexible, v3 user resources.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message()
class AclCreation:
    resource_type: int = i8()
    resource_name: str = string()
    resource_pattern_type: int = i8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = i8()
    permission_type: int = i8()


@message(api_key=30, versions="1-3", flexible="2+", listeners="broker controller")
class CreateAclsRequest:
    creations: list[AclCreation] = array(AclCreation)


@message()
class AclCreationResult:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[AclCreationResult] = array(AclCreationResult)
