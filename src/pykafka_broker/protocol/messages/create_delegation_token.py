"""CreateDelegationToken (API key 38): issue a token that stands for a principal.

v1 is the oldest served; v2 flexible, v3 on behalf of another owner.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, i16, i32, i64, message, string


@message()
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@message(api_key=38, versions="1-3", flexible="2+", listeners="broker controller")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = string("3+", nullable=True, default=None)
    owner_principal_name: str | None = string("3+", nullable=True, default=None)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = i64()


@message(api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: int = i16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+", default="")
    token_requester_principal_name: str = string("3+", default="")
    issue_timestamp_ms: int = i64()
    expiry_timestamp_ms: int = i64()
    max_timestamp_ms: int = i64()
    token_id: str = string()
    hmac: bytes = binary(secret=True)
    throttle_time_ms: int = i32(default=0)
