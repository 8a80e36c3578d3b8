"""The tokens of SASL that a hostile peer sends: those of an account, and each nearly right in one way.

A `Forger` has what one attacker has, and makes tokens of every mechanism of it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwk

from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.sasl.scram_keys import (
    ScramMechanism,
    client_key,
    credential_of,
    escaped,
    exclusive_or,
    salted_password,
    signature,
)
from pykafka_broker.testing.clock import NOW
from tests.support.oauth import EC, RSA, claims, initial, part, signed, unsigned

#: No test lasts so long.
LATER_S = NOW // 1_000 + 1_000_000_000
LONG = 40_000
#: The key of the issuer, and another one of the same name.
KEYS = {"issuer": RSA, "stranger": jwk.RSAKey.generate_key(2048, {"kid": "rsa"})}
ODD_TEXTS = (
    "",
    "\0",
    "=",
    ",",
    "=2C",
    "=3d",
    "\n",
    "n",
    "é",
    "\ud7ff",
    "x" * LONG,
    "User:alice",
    "*",
    "%s{0}",
)
ODD_BYTES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\0" * 3,
    b"\0\0alice-secret",
    b",,",
    b"n,,",
    b"\x01",
    b"=" * 99,
    b"\x80" * LONG,
)

#: Instead of claims that are as they should be; None leaves one out.
ODD_CLAIMS: Sequence[dict[str, Any]] = (
    {"exp": 1},
    {"exp": None},
    {"exp": str(LATER_S)},
    {"exp": [LATER_S]},
    {"exp": 1e300},
    {"exp": 10**400},
    {"exp": -LATER_S},
    {"exp": True},
    {"exp": 0.5},
    {"iat": LATER_S + 1},
    {"iat": None},
    {"iat": -1e300},
    {"nbf": LATER_S - 1},
    {"nbf": {}},
    {"iss": "https://other.example"},
    {"iss": None},
    {"aud": "other"},
    {"aud": []},
    {"aud": [None]},
    {"aud": {"kafka": 1}},
    {"sub": ""},
    {"sub": None},
    {"sub": 7},
    {"sub": ["alice"]},
    {"sub": "mallory" + "y" * LONG},
    {"scope": ["a", "a"]},
    {"scope": {"a": 1}},
    {"scope": " "},
    {"more": "x" * LONG},
)
#: Members of the header of a token, beside or instead of those that it should have.
ODD_HEADERS: Sequence[dict[str, Any]] = (
    {"crit": ["exp"]},
    {"crit": "exp"},
    {"crit": [{}]},
    {"b64": False, "crit": ["b64"]},
    {"kid": None},
    {"kid": "unknown"},
    {"kid": "../../etc/passwd"},
    {"kid": 7},
    {"kid": {}},
    {"jku": "http://127.0.0.1:1/keys"},
    {"jwk": EC.as_dict(private=False)},
    {"x5c": ["AAAA"]},
    {"typ": "x" * 10_000},
    {"alg": "none"},
    {"alg": "NONE"},
    {"alg": None},
    {"alg": 7},
    {"alg": ["RS256"]},
    {"alg": "ES256"},
    {"alg": "EdDSA"},
    {"alg": "dir", "enc": "A128GCM"},
    {"zip": "DEF"},
)
#: JSON that is no object, or none at all.
ODD_JSON = (
    b"[]",
    b"7",
    b"null",
    b'"x"',
    b"",
    b"{",
    b"[" * LONG,
    b'{"a":' * LONG,
    b"\xff",
    b'{"exp":1e999}',
    b"NaN",
)
#: What a claim can be in text only: `json.dumps` would not write it.
ODD_NUMBERS = ("1e999", "-1e999", "9" * 5_000, "Infinity", "NaN", "1e300", "-0", "1" + "0" * 30, "0x7")


@dataclass(frozen=True)
class Forger:
    """An attacker. What he shows is valid if, and only if, it is his own and unspoilt."""

    #: Who he wants to be.
    user: str
    password: str
    scram_password: str
    #: With this one of `KEYS`, and no other, he signs tokens.
    key: str
    chance: Random

    # --- PLAIN ------------------------------------------------------------------------------------

    def plain(self) -> bytes:
        return plain_token(self.user, self.password)

    def odd_plain(self) -> bytes:
        pick = self.chance.choice
        parts = ["", self.user, self.password]
        parts[self.chance.randrange(3)] = pick((*ODD_TEXTS, "alice", self.user.upper()))
        if not self.chance.randrange(4):
            parts.insert(self.chance.randrange(4), pick(ODD_TEXTS))
        return pick(["\0".join(parts).encode("utf-8", "replace"), pick(ODD_BYTES)])

    # --- SCRAM ------------------------------------------------------------------------------------

    def scram_first(self, nonce: str) -> bytes:
        return f"n,,n={escaped(self.user)},r={nonce}".encode()

    def odd_scram_first(self, nonce: str) -> bytes:
        pick = self.chance.choice
        header = pick(
            ["n,,", "y,,", "p=tls-unique,,", "n,a=alice,", f"n,a={self.user},", "n,a=,", "n,", ",,", ""]
        )
        header += pick(["", "", "m=x,", "a=x,"])
        name = pick([escaped(self.user), escaped(self.user), "alice", *ODD_TEXTS])
        sent = pick([nonce, nonce, "", nonce * 500, nonce + ",", nonce + "\0", "é" + nonce])
        more = pick(
            [
                "",
                "",
                ",tokenauth=true",
                ",tokenauth=TRUE,tokenauth=false",
                ",i=1",
                ",x",
                ",=",
                ",a=" + "b" * LONG,
            ]
        )
        return pick(
            [
                f"{header}n={name},r={sent}{more}",
                f"{header}r={sent},n={name}{more}",
                f"{header}n={name}",
                f"c=biws,r={sent},p=AAAA",
                pick(ODD_BYTES).decode("latin-1"),
            ]
        ).encode("utf-8", "surrogatepass")

    def scram_final(self, mechanism: ScramMechanism, first: bytes, server_first: bytes) -> bytes:
        """The right one for the password that he knows, if the server has answered."""
        nonce, salt, iterations = read_server_first(server_first)
        said = f"c=biws,r={nonce}"
        return f"{said},p={self._proof(mechanism, first, server_first, salt, iterations, said)}".encode()

    def odd_scram_final(self, mechanism: ScramMechanism, first: bytes, server_first: bytes) -> bytes:
        pick = self.chance.choice
        nonce, salt, iterations = read_server_first(server_first)
        own = first.decode("utf-8", "replace").rpartition("r=")[2]
        sent = pick(
            [
                nonce,
                nonce,
                own,
                nonce + "x",
                "x" + nonce,
                nonce[:-1],
                nonce[len(own) :],
                nonce.upper(),
                "",
                "=",
                own + nonce,
            ]
        )
        channel = pick(["biws", "biws", "eSws", "cD10bHMtdW5pcXVlLCw=", "", "====", "biws=", "A" * LONG, "é"])
        if pick([False, True]):
            # Signed as it is sent: whether the server compares is all that keeps him out.
            said = f"c={channel},r={sent}"
            proof = self._proof(mechanism, first, server_first, salt, iterations, said)
        else:
            said = f"c={channel},r={sent}" + pick(["", ",m=x", ",x=y", ",i=1", ",p=AAAA", ",="])
            size = mechanism.key_bytes + pick([0, 0, -1, 1, -mechanism.key_bytes, LONG])
            random = self.chance.randbytes(size)
            proof = base64.b64encode(pick([random, bytes(size), b"\xff" * size])).decode()
        proof = pick([proof, proof, proof[:-1], proof + "=", proof.lower(), "", proof + ",x=y", " " + proof])
        return pick(
            [
                f"{said},p={proof}",
                f"{said},p={proof}",
                f"p={proof},{said}",
                said,
                f"{said},p={proof}\0",
                f"{said},p={proof},p={proof}",
                pick(ODD_BYTES).decode("latin-1"),
            ]
        ).encode()

    def _proof(
        self,
        mechanism: ScramMechanism,
        first: bytes,
        server_first: bytes,
        salt: bytes,
        iterations: int,
        said: str,
    ) -> str:
        salted = _salted(mechanism, self.scram_password, salt, iterations)
        credential = credential_of(mechanism, salted, salt, iterations)
        bare = first.decode("utf-8", "replace").split(",", 2)[-1]
        signed_text = f"{bare},{server_first.decode('utf-8', 'replace')},{said}".encode()
        proof = exclusive_or(
            client_key(mechanism, salted), signature(mechanism, credential.stored_key, signed_text)
        )
        return base64.b64encode(proof).decode()

    # --- OAUTHBEARER ------------------------------------------------------------------------------

    def bearer(self) -> bytes:
        return initial(_signed_well(self.user, self.key))

    def odd_bearer(self) -> bytes:
        pick = self.chance.choice
        token = pick(
            [self._odd_claims, self._odd_header, self._odd_json, self._odd_number, self._odd_token]
        )()
        if pick([False, True, True]):
            return initial(token)
        good = _signed_well(self.user, self.key)
        name = pick(["alice", self.user, "m" * LONG, "=", "=2C", "é"])
        return pick(
            [
                initial(good, authorization_id=name),
                initial(good, extensions="a=b\x01"),
                initial(good, extensions="auth=Bearer x\x01"),
                initial(good, extensions="a=" + "b" * LONG + "\x01"),
                initial(good, extensions="1=2\x01"),
                initial(good)[:-1],
                initial(good) + b"\x01",
                initial(good).replace(b"Bearer", pick([b"bearer", b"Basic", b"", b"B" * LONG])),
                initial(good).replace(b"n,", pick([b"y,", b"p=x,", b",", b""]), 1),
                initial(""),
                initial(" " * LONG + good),
                b"\x01",
                pick(ODD_BYTES),
            ]
        )

    def unsecured_bearer(self) -> bytes:
        return initial(unsigned(claims(NOW, sub=self.user, exp=LATER_S)))

    def odd_unsecured_bearer(self) -> bytes:
        pick = self.chance.choice
        good = claims(NOW, sub=self.user, exp=LATER_S)
        odd = {**good, **pick(ODD_CLAIMS)}
        head, body = pick([{"alg": "none"}, pick(ODD_HEADERS)]), pick([good, odd])
        text = pick([json.dumps(body), self._odd_text(good), pick(ODD_JSON).decode("latin-1")])
        token = f"{part(head)}.{_text(text.encode('latin-1'))}."
        return initial(pick([token, token, token + ".", token[:-1], "." + token, token + "AAAA", "..", "."]))

    def _odd_claims(self) -> str:
        return _signed_oddly(self.user, self.key, self.chance.randrange(len(ODD_CLAIMS)), None)

    def _odd_header(self) -> str:
        return _signed_oddly(self.user, self.key, None, self.chance.randrange(len(ODD_HEADERS)))

    def _odd_json(self) -> str:
        pick = self.chance.choice
        head, body, signature_part = _signed_well(self.user, self.key).split(".")
        if pick([False, True]):
            return f"{head}.{_text(pick(ODD_JSON))}.{signature_part}"
        return f"{_text(pick(ODD_JSON))}.{body}.{signature_part}"

    def _odd_number(self) -> str:
        return _signed_number(
            self.user,
            self.key,
            self.chance.randrange(len(ODD_NUMBERS)),
            self.chance.choice(["exp", "iat", "nbf"]),
        )

    def _odd_text(self, good: dict[str, Any]) -> str:
        number, name = self.chance.choice(ODD_NUMBERS), self.chance.choice(["exp", "iat", "nbf"])
        return json.dumps({**good, name: 0}).replace(f'"{name}": 0', f'"{name}": {number}')

    def _odd_token(self) -> str:
        pick = self.chance.choice
        good = _signed_well(self.user, self.key)
        head, body, signature_part = good.split(".")
        at = self.chance.randrange(len(good))
        return pick(
            [
                f"{good[:at]}{pick('AZaz09-_+/.=')}{good[at + 1 :]}",
                good[:at],
                good + ".",
                "." + good,
                f"{head}.{body}.",
                f"{head}..{signature_part}",
                f"{head}.{body}.{signature_part}.{body}.{head}",
                f"{head}.{body}.{'A' * LONG}",
                f"{head}.{'A' * LONG}.{signature_part}",
                f"{'A' * LONG}.{body}.{signature_part}",
                f"{head}.{body}.{signature_part}==",
                _of_public_key(self.user),
                _signed_by_other_kind(self.user),
                unsigned(claims(NOW, sub=self.user, exp=LATER_S)),
                "." * LONG,
            ]
        )


def read_server_first(message: bytes) -> tuple[str, bytes, int]:
    """Nonce, salt and iterations; some that nobody sent if it is no such message."""
    values = dict(each.split("=", 1) for each in message.decode("latin-1").split(",") if "=" in each)
    if {"r", "s", "i"} - values.keys():
        return "nonce", b"salt", 4096
    return values["r"], base64.b64decode(values["s"]), int(values["i"])


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _raw(header: dict[str, Any], content: bytes, key: str) -> str:
    """A token that says anything, with a signature of `key` that fits."""
    said = f"{_text(json.dumps(header).encode())}.{_text(content)}"
    private = KEYS[key].private_key
    assert private is not None
    return f"{said}.{_text(private.sign(said.encode(), PKCS1v15(), SHA256()))}"


@lru_cache
def _signed_well(user: str, key: str) -> str:
    return signed(claims(NOW, sub=user, exp=LATER_S), KEYS[key])


@cache
def _signed_oddly(user: str, key: str, odd_claim: int | None, odd_header: int | None) -> str:
    header = {"alg": "RS256", "kid": RSA.kid, **({} if odd_header is None else ODD_HEADERS[odd_header])}
    content = {"sub": user, "exp": LATER_S, **({} if odd_claim is None else ODD_CLAIMS[odd_claim])}
    changes = {name: value for name, value in content.items() if name not in ("sub", "exp")}
    said = claims(NOW, sub=content["sub"], exp=content["exp"], **changes)
    return _raw(
        {name: value for name, value in header.items() if value is not None}, json.dumps(said).encode(), key
    )


@cache
def _signed_number(user: str, key: str, number: int, name: str) -> str:
    content = json.dumps({**claims(NOW, sub=user, exp=LATER_S), name: 0})
    text = content.replace(f'"{name}": 0', f'"{name}": {ODD_NUMBERS[number]}')
    return _raw({"alg": "RS256", "kid": RSA.kid}, text.encode(), key)


@lru_cache
def _of_public_key(user: str) -> str:
    """The public key of the issuer, taken as a secret."""
    said = ".".join(
        _text(json.dumps(each).encode())
        for each in ({"alg": "HS256", "kid": RSA.kid}, claims(NOW, sub=user, exp=LATER_S))
    )
    digest = hmac.digest(RSA.as_pem(private=False), said.encode(), hashlib.sha256)
    return f"{said}.{_text(digest)}"


@lru_cache
def _signed_by_other_kind(user: str) -> str:
    """A key that the issuer does not have, under the name of one that he has."""
    other = jwk.ECKey.generate_key("P-256", {"kid": "rsa"})
    return signed(claims(NOW, sub=user, exp=LATER_S), other, "ES256")


@lru_cache
def _salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return salted_password(mechanism, password, salt, iterations)
