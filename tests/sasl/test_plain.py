"""PLAIN as a server runs it."""

from __future__ import annotations

import pytest

from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.plain import PlainServer, plain_token
from pykafka_broker.sasl.refusal import RefusedError

PASSWORDS = {"alice": "alice-secret", "bob": "", "мария": "пароль"}


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (plain_token("alice", "alice-secret"), "alice"),
        (plain_token("мария", "пароль"), "мария"),
        (b"alice\0alice\0alice-secret", "alice"),
    ],
)
def test_a_user_who_knows_the_password(token: bytes, user: str) -> None:
    server = PlainServer(PASSWORDS)
    assert server.respond(token) == b""
    assert server.complete
    assert server.account == Account(user)


PARTS = "Invalid SASL/PLAIN response: expected 3 tokens, got "
WRONG = "Authentication failed: Invalid username or password"
OTHER = "Authentication failed: Client requested an authorization id that is different from username"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", f"{PARTS}1"),
        (b"alice", f"{PARTS}1"),
        (b"\0alice", f"{PARTS}2"),
        (b"\0alice\0alice-secret\0and more", f"{PARTS}4"),
        (b"\0alice\0alice-secret\0and\0more", f"{PARTS}4"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0bob\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", WRONG),
        (b"\0alice\0alice-secret-and-more", WRONG),
        (b"\0alice\0alice-secre", WRONG),
        (b"\0Alice\0alice-secret", WRONG),
        (b"\0nobody\0alice-secret", WRONG),
        (b"bob\0alice\0wrong", WRONG),
        (b"bob\0alice\0alice-secret", OTHER),
        (b"\0\xff\xfe\0alice-secret", WRONG),
    ],
)
def test_who_is_refused(token: bytes, told: str) -> None:
    server = PlainServer(PASSWORDS)
    with pytest.raises(RefusedError) as refusal:
        server.respond(token)
    assert refusal.value.told == told
    assert not server.complete
    assert server.account is None


@pytest.mark.parametrize("token", [b"\0hunter1\0hunter2", b"hunter1\0alice\0alice-secret", b"\0hunter1\0"])
def test_no_refusal_quotes_the_token(token: bytes) -> None:
    with pytest.raises(RefusedError) as refusal:
        PlainServer(PASSWORDS).respond(token)
    assert "hunter" not in str(refusal.value)
