"""OAUTHBEARER: its one message, and what a client is told whose token is not accepted."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.exchange import OfferedMechanism, SaslExchange
from pykafka_broker.sasl.oauth_bearer import BearerToken, OAuthBearerServer, TokenError
from pykafka_broker.sasl.refusal import RefusedError, UnreadableTokenError


def validate(token: str) -> BearerToken:
    if token == "good==":
        return BearerToken("alice", 5_000)
    raise TokenError("bad", scope="[read]" if token == "narrow" else None)


def message(token: str = "good==", head: str = "n,,", more: str = "") -> bytes:
    return f"{head}\x01auth=Bearer {token}\x01{more}\x01".encode()


@pytest.mark.parametrize(
    "token",
    [
        message(),
        message(head="n,a=alice,"),
        message(more="traceId=1 2\x01x=~\r\n\x01"),
        b"n,,\x01auth=bearer    good==\x01\x01",
        b"n,,\x01x=1\x01auth=BEARER good==\x01\x01",
        b"n,,\x01auth=Bearer bad\x01auth=Bearer good==\x01\x01",
    ],
)
def test_a_token_lets_its_principal_in(token: bytes) -> None:
    server = OAuthBearerServer(validate)
    assert server.respond(token) == b""
    assert server.account == Account("alice", expires_ms=5_000)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good==\x01\x01",
        b"n,,\x01auth=Bearer good==\x01",
        b"n,,\x01auth=Bearer good==",
        b"n,,\x01auth=good==\x01\x01",
        b"n,,\x01auth=Bearer go od\x01\x01",
        b"n,,\x01x=1\x01\x01",
        b"n,,\x011=1\x01auth=Bearer good==\x01\x01",
        b"n,,\x01x=\x01auth=Bearer good==\x01\x01",
        b"n,,\x01x=\xc3\xa4\x01auth=Bearer good==\x01\x01",
        b"n,a=,\x01auth=Bearer good==\x01\x01",
        message() + b"\n",
    ],
)
def test_what_is_no_such_message_is_refused_without_a_reason(token: bytes) -> None:
    with pytest.raises(RefusedError) as refused:
        OAuthBearerServer(validate).respond(token)
    assert refused.value.told is None


def test_another_scheme_closes_the_connection() -> None:
    with pytest.raises(UnreadableTokenError):
        OAuthBearerServer(validate).respond(b"n,,\x01auth=Basic good==\x01\x01")


def test_nobody_gets_another_name_with_a_token() -> None:
    with pytest.raises(RefusedError, match=r"authorization id \(bob\)"):
        OAuthBearerServer(validate).respond(message(head="n,a=bob,"))


def test_what_a_peer_is_told_fits_into_every_answer() -> None:
    """A name may be longer than an error message can be before v2 of SaslAuthenticate."""
    side = SaslExchange({"OAUTHBEARER": OfferedMechanism(lambda: OAuthBearerServer(validate))})
    side.on_handshake(1, "OAUTHBEARER")
    answer = side.on_token(message(head=f"n,a={'b' * 40_000},"), 0)
    assert answer.error_message.startswith("Authentication failed: Client requested an authorization id (bbb")
    told = SaslAuthenticateResponse(error_code=58, error_message=answer.error_message, auth_bytes=b"")
    assert all(encode(told, version) for version in (0, 1, 2))


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("bad", '{"status":"invalid_token"}'),
        ("narrow", '{"status":"insufficient_scope", "scope":"[read]"}'),
    ],
)
def test_why_a_token_is_not_accepted_is_told_before_the_end(token: str, told: str) -> None:
    side = SaslExchange({"OAUTHBEARER": OfferedMechanism(lambda: OAuthBearerServer(validate))})
    side.on_handshake(1, "OAUTHBEARER")
    first = side.on_token(message(token), 0)
    assert (first.token, first.error_code, first.closes) == (told.encode(), ErrorCode.NONE, False)
    last = side.on_token(b"\x01", 0)
    assert (last.error_message, last.closes) == (told, True)
    assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_client_may_come_with_another_token() -> None:
    side = SaslExchange({"OAUTHBEARER": OfferedMechanism(lambda: OAuthBearerServer(validate), 9_000)})
    side.on_handshake(1, "OAUTHBEARER")
    side.on_token(message("bad"), 0)
    assert side.on_token(message(), 1_000).lifetime_ms == 4_000
    assert side.session is not None
    assert side.session.account.name == "alice"
