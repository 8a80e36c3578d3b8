"""DescribeUserScramCredentials (50): the users that have credentials, and nothing of these."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    UserName,
)
from pykafka_broker.testing.user import User
from tests.support.scram import SHA_256, SHA_512, altering, put


async def described(user: User, *names: str) -> dict[str, DescribeUserScramCredentialsResult]:
    users = [UserName(name=name) for name in names] or None
    answer: DescribeUserScramCredentialsResponse = await user.send(
        DescribeUserScramCredentialsRequest(users=users), 0
    )
    assert (answer.error_code, answer.error_message) == (0, "")
    return {result.user: result for result in answer.results}


def told(name: str, **iterations: int) -> DescribeUserScramCredentialsResult:
    types = {"sha_256": SHA_256, "sha_512": SHA_512}
    infos = [CredentialInfo(mechanism=types[key], iterations=count) for key, count in iterations.items()]
    return DescribeUserScramCredentialsResult(
        user=name, error_code=0, error_message="", credential_infos=infos
    )


def refused(name: str, error: ErrorCode, message: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name, error_code=error, error_message=message, credential_infos=[]
    )


async def test_users_have_mechanisms_and_iterations(user: User) -> None:
    assert await described(user) == {}
    await user.send(altering(put("alice"), put("bob")), 0)
    await user.send(altering(put("alice", SHA_512, 8192)), 0)

    alice, bob = told("alice", sha_256=4096, sha_512=8192), told("bob", sha_256=4096)
    assert await described(user) == {"alice": alice, "bob": bob}
    assert await described(user, "bob") == {"bob": bob}


async def test_a_user_that_there_is_not_and_one_that_is_asked_for_twice(user: User) -> None:
    assert await described(user, "nobody", "twice", "twice") == {
        "nobody": refused(
            "nobody",
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: nobody",
        ),
        "twice": refused(
            "twice",
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: twice",
        ),
    }
