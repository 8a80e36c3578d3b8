"""SCRAM: the exchange of RFC 7677 byte for byte, both sides against each other, and who is refused."""

from __future__ import annotations

import base64

import pytest

from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.refusal import RefusedError, UnreadableTokenError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import (
    SCRAM_MECHANISMS,
    ScramCredential,
    credential_of,
    random_text,
    salted_password,
)
from pykafka_broker.sasl.scram_server import ScramEntry, ScramServer

SHA_256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]
OTHER = "Authentication failed: Client requested an authorization id that is different from username"


def credential(
    password: str, mechanism: str = "SCRAM-SHA-256", salt: bytes = b"salt", iterations: int = 4096
) -> ScramCredential:
    kind = SCRAM_MECHANISMS[mechanism]
    return credential_of(kind, salted_password(kind, password, salt, iterations), salt, iterations)


def server(
    users: dict[str, ScramCredential],
    mechanism: str = "SCRAM-SHA-256",
    nonce: str = "srv",
    tokens: dict[str, ScramEntry] | None = None,
) -> ScramServer:
    def find(name: str, by_token: bool) -> ScramEntry | None:
        if by_token:
            return (tokens or {}).get(name)
        known = users.get(name)
        return None if known is None else ScramEntry(known, Account(name))

    return ScramServer(SCRAM_MECHANISMS[mechanism], find, nonce)


def converse(side: ScramServer, client: ScramClient) -> None:
    client.verify(side.respond(client.final(side.respond(client.first()))))


def test_the_exchange_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    side = server({"user": credential("pencil", salt=salt)}, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    client = ScramClient(SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    server_first = side.respond(client.first())
    assert server_first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    client_final = client.final(server_first)
    assert client_final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    server_final = side.respond(client_final)
    assert server_final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    client.verify(server_final)
    assert side.account == Account("user")


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "=2C", ",=3D,"])
def test_both_sides_agree(mechanism: str, user: str) -> None:
    side = server({user: credential("пароль", mechanism)}, mechanism)
    converse(side, ScramClient(SCRAM_MECHANISMS[mechanism], user, "пароль", "cli"))
    assert side.complete
    assert side.account == Account(user)


def test_a_delegation_token_speaks_for_its_owner() -> None:
    owner = Account("alice", expires_ms=1000, by_token=True)
    tokens = {"id": ScramEntry(credential("mac"), owner)}
    side = server({"id": credential("mac")}, tokens=tokens)
    converse(side, ScramClient(SHA_256, "id", "mac", "cli", by_token=True))
    assert side.account == owner


def test_a_token_is_no_user() -> None:
    side = server({"alice": credential("secret")})
    with pytest.raises(RefusedError):
        converse(side, ScramClient(SHA_256, "alice", "secret", "cli", by_token=True))


@pytest.mark.parametrize(
    "first", [b"n,a=alice,n=alice,r=cli", b"n,,m=x,n=alice,r=cli", b"n,,n=alice,r=cli,x=y"]
)
def test_first_messages_that_are_read(first: bytes) -> None:
    assert server({"alice": credential("secret")}).respond(first).startswith(b"r=clisrv,s=c2FsdA==,i=4096")


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"y,,n=alice,r=cli",
        b"p=tls-unique,,n=alice,r=cli",
        b"n,,n=,r=cli",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=cli",
        b"n,,n=al\0ice,r=cli",
        "n,,n=алиса,r=cli".encode(),
        b"n,,n=alice,r=c li",
        b"n,,n=alice,r=cli,",
        b"n,,n=alice,r=cli\n",
        b"\xff",
    ],
)
def test_first_messages_that_are_not(first: bytes) -> None:
    with pytest.raises(RefusedError, match="Invalid SCRAM client first message format") as refusal:
        server({"alice": credential("secret")}).respond(first)
    assert refusal.value.told is None


@pytest.mark.parametrize(("user", "told"), [("alice", OTHER), ("nobody", None)])
def test_another_authorization_id_is_refused(user: str, told: str | None) -> None:
    with pytest.raises(RefusedError) as refusal:
        server({"alice": credential("secret")}).respond(f"n,a=bob,n={user},r=cli".encode())
    assert refusal.value.told == told


def test_an_unknown_user_is_refused_at_once_and_told_as_little_as_one_with_a_wrong_password() -> None:
    client = ScramClient(SHA_256, "alice", "wrong", "cli")
    known = server({"alice": credential("secret")})
    with pytest.raises(RefusedError) as wrong_password:
        known.respond(client.final(known.respond(client.first())))
    with pytest.raises(RefusedError) as unknown:
        server({}).respond(client.first())
    assert (wrong_password.value.told, unknown.value.told) == (None, None)


def final(nonce: str = "clisrv", proof: bytes = bytes(32)) -> bytes:
    return f"c=biws,r={nonce},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (final(), "Invalid client credentials"),
        (final(nonce="srv"), "Invalid client nonce"),
        (final(nonce="clisrvx"), "Invalid client nonce"),
        (b"c=biws,r=clisrv", "Invalid SCRAM client final message format"),
        (b"c=biws,r=clisrv,p=abc", "Invalid SCRAM client final message format"),
        (b"", "Invalid SCRAM client final message format"),
    ],
)
def test_final_messages_that_are_refused(message: bytes, reason: str) -> None:
    side = server({"alice": credential("secret")})
    side.respond(b"n,,n=alice,r=cli")
    with pytest.raises(RefusedError, match=reason) as refusal:
        side.respond(message)
    assert refusal.value.told is None
    assert not side.complete


@pytest.mark.parametrize("proof_bytes", [0, 31, 33, 64])
def test_a_proof_of_the_wrong_length(proof_bytes: int) -> None:
    side = server({"alice": credential("secret")})
    side.respond(b"n,,n=alice,r=cli")
    with pytest.raises(UnreadableTokenError):
        side.respond(final(proof=bytes(proof_bytes)))


def test_too_few_iterations() -> None:
    with pytest.raises(RefusedError, match="less than the minimum 4096"):
        server({"alice": credential("secret", iterations=4095)}).respond(b"n,,n=alice,r=cli")


@pytest.mark.parametrize(
    ("server_first", "reason"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not start with client nonce"),
        (b"r=clisrv,s=c2FsdA==,i=1", "asks for 1 iterations"),
        (b"r=clisrv,s=c2FsdA==,i=999999999", "asks for 999999999 iterations"),
        (b"r=clisrv,s=*,i=4096", "Invalid SCRAM server first"),
        (b"e=other-error", "Invalid SCRAM server first"),
    ],
)
def test_a_client_does_not_trust_every_server(server_first: bytes, reason: str) -> None:
    client = ScramClient(SHA_256, "alice", "secret", "cli")
    with pytest.raises(RefusedError, match=reason):
        client.final(server_first)


def test_a_server_that_does_not_know_the_credential() -> None:
    side = server({"alice": credential("secret")})
    client = ScramClient(SHA_256, "alice", "secret", "cli")
    client.final(side.respond(client.first()))
    with pytest.raises(RefusedError, match="Invalid server signature"):
        client.verify(b"v=" + base64.b64encode(bytes(32)))
    with pytest.raises(RefusedError, match="Invalid server signature"):
        ScramClient(SHA_256, "alice", "secret", "cli").verify(b"v=")


def test_no_key_in_repr() -> None:
    made = credential("secret", salt=b"Zm9v")
    assert repr(ScramEntry(made, Account("alice"))).count("b'") == 0


def test_random_text() -> None:
    assert [random_text(number) for number in (0, 35, 36)] == ["0", "z", "10"]
    most = 2**130 - 1
    assert int(random_text(most), 36) == most
