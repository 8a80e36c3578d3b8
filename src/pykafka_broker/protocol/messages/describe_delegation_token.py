"""DescribeDelegationToken (API key 41): the tokens that the caller may see.

v1 is the oldest served; v2 flexible, v3 who asked for the token.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, i16, i32, i64, message, string


@message()
class DescribeDelegationTokenOwner:
    principal_type: str = string()
    principal_name: str = string()


@message(api_key=41, versions="1-3", flexible="2+", listeners="broker controller")
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable=True)


@message()
class DescribedDelegationTokenRenewer:
    principal_type: str = string()
    principal_name: str = string()


@message()
class DescribedDelegationToken:
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+", default="")
    token_requester_principal_name: str = string("3+", default="")
    issue_timestamp: int = i64()
    expiry_timestamp: int = i64()
    max_timestamp: int = i64()
    token_id: str = string()
    hmac: bytes = binary(secret=True)
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


@message(api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: int = i16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = i32(default=0)
