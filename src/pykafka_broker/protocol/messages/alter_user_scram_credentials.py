"""AlterUserScramCredentials (API key 51): set or remove users' SCRAM credentials.

v0 is the only version, flexible. The client sends the salted password, never the password.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, i8, i16, i32, message, string


@message()
class ScramCredentialDeletion:
    name: str = string()
    mechanism: int = i8()


@message()
class ScramCredentialUpsertion:
    name: str = string()
    mechanism: int = i8()
    iterations: int = i32()
    salt: bytes = binary()
    salted_password: bytes = binary(secret=True)


@message(api_key=51, versions="0", flexible="0+", listeners="broker controller")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


@message()
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
