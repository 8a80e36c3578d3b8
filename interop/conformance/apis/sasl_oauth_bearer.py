"""SaslAuthenticate with OAUTHBEARER: tokens without a signature, and the messages around them."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from interop.conformance.apis.sasl_scram import MODULES, WITH_SCRAM, chosen, told
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.metadata import MetadataRequest

#: Apache Kafka logs in itself before it listens, with a token of its own.
LOGIN = (
    f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="admin" unsecuredLoginStringClaim_azp="admin"'
)
JAAS = "listener.name.plaintext.oauthbearer.sasl.jaas.config"
WITH_OAUTH = {
    **WITH_SCRAM,
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    JAAS: f'{LOGIN} unsecuredValidatorAllowableClockSkewMs="3000";',
}
WITH_SCOPE = {
    **WITH_OAUTH,
    JAAS: f'{LOGIN} unsecuredValidatorRequiredScope="read write" unsecuredValidatorPrincipalClaimName="azp";',
}


def part(content: Any) -> str:
    return base64.b64encode(json.dumps(content).encode()).decode().rstrip("=")


def token(**changes: Any) -> str:
    """A token of alice for 1,000 seconds; a change to None leaves a claim out."""
    now_s = int(time.time())
    claims = {"sub": "alice", "iat": now_s, "exp": now_s + 1_000, **changes}
    return f"{part({'alg': 'none'})}.{part({k: v for k, v in claims.items() if v is not None})}."


def initial(token: str, head: str = "n,,", more: str = "") -> bytes:
    return f"{head}\x01auth=Bearer {token}\x01{more}\x01".encode()


def enters(talk: Talk, message: bytes) -> None:
    """Let in, and so allowed to ask."""
    other = chosen(talk.another(), "OAUTHBEARER")
    answer = other.do(told(message))
    other.note("answer", bytes(answer.auth_bytes).decode())
    if not answer.auth_bytes:
        other.note("lifetime in ten seconds", str(round(answer.session_lifetime_ms / 10_000)))
        other.do(MetadataRequest(topics=[]))


def is_told(talk: Talk, message: bytes) -> None:
    """Told why not, and then refused."""
    other = chosen(talk.another(), "OAUTHBEARER")
    other.ask(told(message))
    other.ask(told(b"\x01"), E.SASL_AUTHENTICATION_FAILED)
    other.is_closed()


@conversation(settings=WITH_OAUTH)
def a_token_lets_its_subject_in(talk: Talk) -> None:
    for message in (
        initial(token()),
        initial(token(), head="n,a=alice,"),
        initial(token(), more="traceId=1\x01"),
        initial(token(iat=None, scope="a b", aud=["x"], nested={"a": [1]}, yes=True)),
        initial(token(iat=time.time() + 2)),
        b"n,,\x01auth=bearer   " + token().encode() + b"\x01\x01",
        b"n,,\x01auth=Bearer bad\x01auth=Bearer " + token().encode() + b"\x01\x01",
    ):
        enters(talk, message)


@conversation(settings=WITH_OAUTH)
def tokens_that_are_not_accepted(talk: Talk) -> None:
    for each in (
        token(exp=1),
        token(exp=None),
        token(exp="5"),
        token(exp=[5]),
        token(exp=True),
        token(sub=None),
        token(sub=" "),
        token(sub=5),
        token(sub=["alice"]),
        token(iat=time.time() + 100),
        token(iat="now"),
        token(iat=time.time() + 2, exp=time.time() + 1),
        token(scope=5),
        token() + "c2ln",
        token()[:-1],
        token() + ".",
        "a.b.",
        "a",
        f"{part({'alg': 'HS256'})}.{part({})}.",
        f"{part({'alg': None})}.{part({})}.",
        f"{part({'alg': 'none'})}.{part([1])}.",
        f"{part({'alg': 'none'})}.bm90IGpzb24.",
    ):
        is_told(talk, initial(each))


@conversation(settings=WITH_OAUTH)
def a_header_without_an_algorithm_closes_the_connection(talk: Talk) -> None:
    for header in ({}, {"typ": "JWT"}, [1]):
        other = chosen(talk.another(), "OAUTHBEARER")
        other.send(told(initial(f"{part(header)}.{part({})}.")))
        other.is_closed()


@conversation(settings=WITH_OAUTH)
def another_scheme_closes_the_connection(talk: Talk) -> None:
    other = chosen(talk.another(), "OAUTHBEARER")
    other.send(told(f"n,,\x01auth=Basic {token()}\x01\x01".encode()))
    other.is_closed()


@conversation(settings=WITH_OAUTH)
def messages_that_are_refused(talk: Talk) -> None:
    good = token()
    for message in (
        b"",
        b"\x01",
        b"n,,\x01\x01",
        f"y,,\x01auth=Bearer {good}\x01\x01".encode(),
        f"n,,\x01auth=Bearer {good}\x01".encode(),
        f"n,,\x01auth={good}\x01\x01".encode(),
        b"n,,\x01auth=Bearer go od\x01\x01",
        b"n,,\x01x=1\x01\x01",
        f"n,,\x011=1\x01auth=Bearer {good}\x01\x01".encode(),
        f"n,a=,\x01auth=Bearer {good}\x01\x01".encode(),
        initial(good, head="n,a=bob,"),
    ):
        other = chosen(talk.another(), "OAUTHBEARER")
        other.ask(told(message), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()


@conversation(settings=WITH_OAUTH)
def a_second_token_after_a_bad_one(talk: Talk) -> None:
    other = chosen(talk.another(), "OAUTHBEARER")
    other.ask(told(initial(token(exp=1))))
    answer = other.do(told(initial(token())))
    other.note("answer", bytes(answer.auth_bytes).decode())
    other.do(MetadataRequest(topics=[]))


@conversation(settings=WITH_SCOPE)
def a_scope_that_is_required(talk: Talk) -> None:
    for scope in ("read write", "read", ["read"], [], None, ["write", 5, {}], " "):
        is_told(talk, initial(token(azp="job", scope=scope)))
    enters(talk, initial(token(azp="job", scope=["write", " read ", "x"])))
    is_told(talk, initial(token(scope=["write", "read"])))
