"""SaslAuthenticate with SCRAM: the course of an exchange."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from interop.conformance.apis.alter_user_scram_credentials import altering, describing, put
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, ScramMechanism, salted_password

MODULES = "org.apache.kafka.common.security"
#: With PLAIN; the password of each is the name.
USERS = ("alice", "bob", "carol")
WITH_SCRAM = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{MODULES}.plain.PlainLoginModule required username="bob" password="bob" '
        + " ".join(f'user_{user}="{user}"' for user in USERS)
        + ";"
    ),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
}
PASSWORD = "scram-secret"
SALT = b"conformance"


def told(token: bytes) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=token)


def chosen(talk: Talk, mechanism: str) -> Talk:
    talk.ask(SaslHandshakeRequest(mechanism=mechanism))
    return talk


def with_credentials(talk: Talk) -> str:
    """The name of a user with a credential of either mechanism, which the node knows."""
    user = talk.name("user")
    admin = talk.another()
    admin.log_in("bob")
    for mechanism in SCRAM_MECHANISMS.values():
        salted = salted_password(mechanism, PASSWORD, SALT, 4096)
        admin.do(altering(put(user, mechanism.type, 4096, SALT, salted)))
    # In a cluster this node may know them later than the controller.
    admin.ask(
        describing(user),
        until=lambda answer: len(answer.results[0].credential_infos) == len(SCRAM_MECHANISMS),
        in_any_order={"credential_infos": "mechanism"},
    )
    return user


def first_answer(talk: Talk, token: bytes) -> bytes:
    """The server's answer to a first token; its nonce is random, what follows is compared."""
    answer: bytes = bytes(talk.do(told(token)).auth_bytes)
    talk.note("after the nonce", answer.partition(b",")[2].decode())
    return answer


def both(talk: Talk) -> Iterable[tuple[Talk, ScramMechanism]]:
    for mechanism in SCRAM_MECHANISMS.values():
        yield chosen(talk.another(), mechanism.name), mechanism


@conversation(settings=WITH_SCRAM)
def a_user_with_scram_credentials(talk: Talk) -> None:
    user = with_credentials(talk)
    for other, mechanism in both(talk):
        client = ScramClient(mechanism, user, PASSWORD, "nonce")
        final = client.final(first_answer(other, client.first()))
        client.verify(bytes(other.do(told(final)).auth_bytes))


@conversation(settings=WITH_SCRAM)
def a_wrong_password(talk: Talk) -> None:
    user = with_credentials(talk)
    for other, mechanism in both(talk):
        client = ScramClient(mechanism, user, "wrong", "nonce")
        other.ask(told(client.final(first_answer(other, client.first()))), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()


@conversation(settings=WITH_SCRAM)
def first_messages_that_are_refused(talk: Talk) -> None:
    user = with_credentials(talk)
    for token in (
        b"n,,n=nobody,r=nonce",
        b"n,a=other,n=nobody,r=nonce",
        f"n,a=other,n={user},r=nonce".encode(),
        f"n,,n={user},r=nonce,tokenauth=true".encode(),
        f"y,,n={user},r=nonce".encode(),
        f"n,,n={user},r=".encode(),
        f"n,,n={user},r=no nce".encode(),
        b"n,,n=,r=nonce",
        b"n,,n=a=b,r=nonce",
        b"",
        b"\xff",
    ):
        other = chosen(talk.another(), "SCRAM-SHA-256")
        other.ask(told(token), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()


@conversation(settings=WITH_SCRAM)
def final_messages_that_are_refused(talk: Talk) -> None:
    user = with_credentials(talk)
    proof = base64.b64encode(bytes(32)).decode()
    for end in (
        f",p={proof}",
        "x,p=" + proof,
        "",
        ",p=abc",
        f",ext=1,p={proof}",
    ):
        other = chosen(talk.another(), "SCRAM-SHA-256")
        nonce = first_answer(other, f"n,,n={user},r=nonce".encode()).partition(b",")[0].decode()
        other.ask(told(f"c=biws,{nonce}{end}".encode()), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()


@conversation(settings=WITH_SCRAM)
def a_proof_of_another_length(talk: Talk) -> None:
    user = with_credentials(talk)
    for size in (0, 31, 33):
        other = chosen(talk.another(), "SCRAM-SHA-256")
        nonce = first_answer(other, f"n,,n={user},r=nonce".encode()).partition(b",")[0].decode()
        proof = base64.b64encode(bytes(size)).decode()
        other.send(told(f"c=biws,{nonce},p={proof}".encode()))
        other.is_closed()


@conversation(settings=WITH_SCRAM)
def extensions_that_are_ignored(talk: Talk) -> None:
    user = with_credentials(talk)
    for token in (f"n,a={user},n={user},r=nonce", f"n,,m=x,n={user},r=nonce", f"n,,n={user},r=nonce,x=y"):
        first_answer(chosen(talk.another(), "SCRAM-SHA-512"), token.encode())
