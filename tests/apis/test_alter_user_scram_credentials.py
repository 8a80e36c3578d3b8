"""AlterUserScramCredentials (51): credentials come, log users in, and go."""

from __future__ import annotations

import pytest

from pykafka_broker.broker.formatting import NewCluster, format_directories
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResult,
)
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka_broker.sasl.refusal import RefusedError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.sasl import AT_ONCE, PLAIN_LISTENER
from tests.support.scram import SHA_512, altering, drop, put

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SETTINGS = {
    **PLAIN_LISTENER,
    **AT_ONCE,
    "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,SCRAM-SHA-256",
    "listener.name.clients.scram-sha-256.sasl.jaas.config": LOGIN,
    "listener.name.clients.scram-sha-512.sasl.jaas.config": LOGIN,
}


async def changed(user: User, request: AlterUserScramCredentialsRequest) -> dict[str, ErrorCode]:
    answer = await user.send(request, 0)
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


async def logs_in(home: Home, name: str, password: str, mechanism: str) -> bool:
    """Whether the listener of clients lets a user in."""
    client = ScramClient(SCRAM_MECHANISMS[mechanism], name, password, "nonce")
    listener = home.broker.node.listeners.listeners["CLIENTS"]
    async with await User.connect(f"127.0.0.1:{listener.port}") as user:
        assert await user.send(SaslHandshakeRequest(mechanism=mechanism), 1) == SaslHandshakeResponse(
            error_code=0, mechanisms=["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
        )
        first = await user.send(SaslAuthenticateRequest(auth_bytes=client.first()), 2)
        if first.error_code:
            return False
        try:
            last = await user.send(SaslAuthenticateRequest(auth_bytes=client.final(first.auth_bytes)), 2)
            client.verify(bytes(last.auth_bytes))
        except RefusedError:
            return False
        return bool(await user.topics() == {})


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
async def test_a_user_logs_in_with_the_credential_of_a_mechanism(mechanism: str) -> None:
    home = Home(SETTINGS, listen=None)
    kind = SCRAM_MECHANISMS[mechanism].type
    async with home.running() as admin:
        assert await changed(admin, altering(put("alice", kind))) == {"alice": ErrorCode.NONE}

        assert await logs_in(home, "alice", "password of alice", mechanism)
        assert not await logs_in(home, "alice", "another password", mechanism)
        assert not await logs_in(home, "bob", "password of alice", mechanism)
        for other in SCRAM_MECHANISMS.keys() - {mechanism}:
            assert not await logs_in(home, "alice", "password of alice", other)

        assert await changed(admin, altering(drop("alice", kind))) == {"alice": ErrorCode.NONE}
        assert not await logs_in(home, "alice", "password of alice", mechanism)


async def test_credentials_outlive_the_broker_and_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    home = Home(SETTINGS, listen=None)
    with caplog.at_level("DEBUG"):
        async with home.running() as admin:
            await changed(admin, altering(put("alice")))
        home = home.killed()
        async with home.running() as admin:
            assert await logs_in(home, "alice", "password of alice", "SCRAM-SHA-256")
    assert "salted_password" not in caplog.text
    assert "stored_key" not in caplog.text


async def test_a_new_cluster_may_begin_with_users() -> None:
    home = Home(SETTINGS, listen=None)
    users = NewCluster(scram=("SCRAM-SHA-256=[name=alice,password=alice-secret]",))
    format_directories(home.files, home.config(), now_ms=0, ignore_formatted=False, new=users)
    async with home.running():
        assert await logs_in(home, "alice", "alice-secret", "SCRAM-SHA-256")


async def test_each_user_succeeds_or_fails_by_itself(user: User) -> None:
    answer = await user.send(altering(drop("nobody"), put("alice"), put("bob", iterations=1)), 0)

    assert sorted(answer.results, key=lambda result: str(result.user)) == [
        AlterUserScramCredentialsResult(user="alice", error_code=0),
        AlterUserScramCredentialsResult(
            user="bob", error_code=ErrorCode.UNACCEPTABLE_CREDENTIAL, error_message="Too few iterations"
        ),
        AlterUserScramCredentialsResult(
            user="nobody",
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message="Attempt to delete a user credential that does not exist",
        ),
    ]


async def test_a_user_comes_once_in_a_request(user: User) -> None:
    twice = altering(put("alice"), put("alice", SHA_512))
    assert await changed(user, twice) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
