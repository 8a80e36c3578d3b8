"""DescribeUserScramCredentials (API key 50): which SCRAM mechanisms users have, and their iterations.

v0 is the only version, flexible. Nothing secret is returned.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message()
class UserName:
    name: str = string()


@message(api_key=50, versions="0", flexible="0+", listeners="broker controller")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = array(UserName, nullable=True)


@message()
class CredentialInfo:
    mechanism: int = i8()
    iterations: int = i32()


@message()
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
