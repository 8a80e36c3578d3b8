"""Which bearer tokens are accepted: signed ones, and those without a signature."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwk

from pykafka_broker.sasl.oauth_bearer import BearerToken, TokenError
from pykafka_broker.sasl.refusal import UnreadableTokenError
from pykafka_broker.sasl.signed_tokens import SignedRules, UnknownKeyError, read_keys, signed_token
from pykafka_broker.sasl.unsecured_tokens import UnsecuredRules, unsecured_token
from tests.support.oauth import (
    AUDIENCE,
    EC,
    ISSUER,
    RSA,
    claims,
    key_set,
    part,
    signed,
    signed_text,
    unsigned,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1_000
RULES = SignedRules(issuer=ISSUER, audiences=frozenset({AUDIENCE, "other"}))
KEYS = read_keys(key_set())
ALICE = BearerToken("alice", NOW_MS + 3_600_000)
OTHER = jwk.RSAKey.generate_key(2048, {"kid": "rsa"})
ANY = UnsecuredRules()


def of(now_ms: int = NOW_MS, **changes: Any) -> dict[str, Any]:
    return claims(now_ms, **changes)


@pytest.mark.parametrize(
    "token",
    [
        signed(of()),
        signed(of(), EC, "ES256"),
        signed(of(), RSA, "PS512"),
        signed(of(), kid=None),
        signed(of(aud=["x", "other"])),
        signed(of(scope=["read", "write"])),
        signed(of(scope=None)),
        signed(of(nbf=NOW_S + 30)),
        signed(of(iat=NOW_S + 500)),
        signed(of(sub=" alice ")),
    ],
)
def test_a_signed_token_is_accepted(token: str) -> None:
    assert signed_token(token, KEYS, RULES, NOW_MS) == ALICE


def test_a_token_for_somebody_is_for_nobody_else() -> None:
    """Also where no audience is expected."""
    rules = SignedRules(issuer=ISSUER)
    assert signed_token(signed(of(aud=None)), KEYS, rules, NOW_MS) == ALICE
    with pytest.raises(TokenError, match="another audience"):
        signed_token(signed(of()), KEYS, rules, NOW_MS)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: signed(of(exp=NOW_S - 30)), "has expired"),
        (lambda: signed(of(nbf=NOW_S + 31)), "not valid yet"),
        (lambda: signed(of(sub=None)), "no sub that is a name"),
        (lambda: signed(of(jti=5)), "jti of the token is no text"),
        (lambda: signed(of(), OTHER), "signature of the token is wrong"),
        (lambda: signed_text('{"sub":"alice","sub":"root"}'), "claims of the token is malformed"),
        (lambda: signed_text('{"a":' * 100_000), "claims of the token is malformed"),
        (lambda: f"{part(5)}.{part(of())}.c2ln", "header of the token is malformed"),
        (lambda: f"{part({'alg': 'RS256', 'crit': ['x'], 'x': 1})}.{part(of())}.c2ln", "crit"),
        (lambda: f"{part({'alg': 'RS256', 'cty': 'JWT'})}.{part(of())}.c2ln", "holds another token"),
    ],
)
def test_the_log_says_why_a_token_is_refused(make: Callable[[], str], reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        signed_token(make(), KEYS, RULES, NOW_MS)


def test_only_the_size_of_a_request_limits_a_token() -> None:
    """Its header had at most 512 bytes, its claims 128,000."""
    long_header, long_claims = (
        signed(of(), x5c=["x" * 10_000]),
        signed_text(json.dumps(of(roles="x" * 200_000))),
    )
    assert {signed_token(each, KEYS, RULES, NOW_MS) for each in (long_header, long_claims)} == {ALICE}


@pytest.mark.parametrize("half", ["\ud800", "alice\udfff"])
def test_half_of_a_surrogate_pair_is_in_no_name(half: str) -> None:
    """It logged in, and the record of a delegation token could not be written."""
    with pytest.raises(TokenError, match="surrogate"):
        signed_token(signed(of(sub=half)), KEYS, RULES, NOW_MS)
    with pytest.raises(TokenError, match="surrogate"):
        unsecured_token(unsigned(of(sub=half)), ANY, NOW_MS)


def hmac_with_a_public_key() -> str:
    """The confusion of algorithms: what everybody may read, used as a secret."""
    public = RSA.as_pem(private=False)
    with pytest.warns(match=".*"):
        return signed(of(), jwk.OctKey.import_key(public, {"kid": "rsa"}), "HS256")


@pytest.mark.parametrize(
    "make",
    [
        lambda: unsigned(of()),
        lambda: unsigned(of()) + "c2lnbmF0dXJl",
        lambda: signed(of(), OTHER),
        lambda: signed(of(), OTHER, kid=None),
        lambda: signed(of(), OTHER, jwk=OTHER.as_dict(private=False)),
        lambda: signed(of()).rpartition(".")[0] + ".",
        lambda: signed(of())[:-8] + "AAAAAAAA",
        lambda: ".".join((signed(of()).split(".")[0], part(of(sub="root")), signed(of()).split(".")[2])),
        lambda: "a.b.c",
        lambda: "",
        lambda: "....",
        lambda: signed(of()) + ".x",
        lambda: signed(of(), kid="../../etc/passwd"),
        lambda: f"{part([1])}.{part(of())}.c2ln",
        lambda: f"{part({'alg': 'RS256', 'kid': 5})}.{part(of())}.c2ln",
        lambda: f"{part({'alg': ['RS256']})}.{part(of())}.c2ln",
        lambda: f"{part({'alg': 'RS256', 'crit': ['x'], 'x': 1, 'kid': 'rsa'})}.{part(of())}.c2ln",
    ],
)
def test_a_token_that_the_issuer_has_not_signed(make: Callable[[], str]) -> None:
    with pytest.raises(TokenError):
        signed_token(make(), KEYS, RULES, NOW_MS)


def test_a_public_key_is_no_secret() -> None:
    header = part({"alg": "HS256", "kid": "rsa"})
    with pytest.raises(TokenError, match="asymmetric algorithm"):
        signed_token(f"{header}.{part(of())}.c2ln", KEYS, RULES, NOW_MS)


def test_a_key_counts_for_its_own_algorithm() -> None:
    keys = read_keys(json.dumps({"keys": [{**RSA.as_dict(private=False), "alg": "RS512"}]}).encode())
    with pytest.raises(UnknownKeyError):
        signed_token(signed(of()), keys, RULES, NOW_MS)
    assert signed_token(signed(of(), RSA, "RS512"), keys, RULES, NOW_MS) == ALICE


def test_the_name_of_a_key_that_is_not_known_is_told() -> None:
    with pytest.raises(UnknownKeyError) as unknown:
        signed_token(signed(of(), kid="next"), KEYS, RULES, NOW_MS)
    assert unknown.value.kid == "next"


def test_a_set_of_keys_may_have_others() -> None:
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    encrypts = {**RSA.as_dict(private=False), "use": "enc"}
    entries = [secret, encrypts, {"kty": "new"}, {"kty": "RSA"}, 5, EC.as_dict(private=False)]
    assert [key.kid for key in read_keys(json.dumps({"keys": entries}).encode())] == ["ec"]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"keys": 1}', b"\xff", b"[" * 100_000])
def test_what_is_no_set_of_keys(data: bytes) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        read_keys(data)


@pytest.mark.parametrize(
    ("token", "rules"),
    [
        (unsigned(of()), ANY),
        (unsigned(of(scope=None, aud=None, iss=None, iat=None)), ANY),
        (unsigned(of(scope=["a", " b "])), UnsecuredRules(required_scope=("a", "b"))),
        (unsigned(of(azp="alice", sub=5)), UnsecuredRules(principal_claim="azp")),
        (unsigned(of(iat=NOW_S + 3)), UnsecuredRules(clock_skew_ms=3_000)),
    ],
)
def test_a_token_without_a_signature(token: str, rules: UnsecuredRules) -> None:
    assert unsecured_token(token, rules, NOW_MS) == ALICE


@pytest.mark.parametrize("expires_s", ["1e300", "1e999", str(2**63)])
def test_a_token_lasts_no_longer_than_there_is_time(expires_s: str) -> None:
    claims = base64.b64encode(f'{{"sub":"alice","exp":{expires_s}}}'.encode()).decode().rstrip("=")
    token = f"{part({'alg': 'none'})}.{claims}."
    assert unsecured_token(token, ANY, NOW_MS) == BearerToken("alice", 2**63 - 1)


@pytest.mark.parametrize(
    "token",
    [
        unsigned(of(exp=NOW_S)),
        unsigned(of(exp=None)),
        unsigned(of(exp="5")),
        unsigned(of(exp=[5])),
        unsigned(of(sub=None)),
        unsigned(of(sub=" ")),
        unsigned(of(sub=["alice"])),
        unsigned(of(iat=NOW_S + 1)),
        unsigned(of(iat="0")),
        unsigned(of(scope=5)),
        unsigned(of(), {"alg": "None"}),
        unsigned(of()) + "c2ln",
        unsigned(of()) + ".",
        unsigned(of())[:-1],
        "a.b.",
        "",
        ".",
        signed(of()),
    ],
)
def test_what_such_a_token_must_be(token: str) -> None:
    with pytest.raises(TokenError) as refused:
        unsecured_token(token, ANY, NOW_MS)
    assert refused.value.told == '{"status":"invalid_token"}'


def test_a_required_scope_is_told() -> None:
    """Text is one scope, however many words it has, as in Apache Kafka."""
    with pytest.raises(TokenError) as refused:
        unsecured_token(unsigned(of()), UnsecuredRules(required_scope=("read", "write")), NOW_MS)
    assert refused.value.told == '{"status":"insufficient_scope", "scope":"[read, write]"}'


@pytest.mark.parametrize("header", [{}, {"alg": None, "x": 1}, [1], 5])
def test_a_header_without_an_algorithm_closes_the_connection(header: Any) -> None:
    if header == {"alg": None, "x": 1}:
        # The text of null, in Apache Kafka's reading.
        with pytest.raises(TokenError):
            unsecured_token(unsigned(of(), header), ANY, NOW_MS)
        return
    with pytest.raises(UnreadableTokenError):
        unsecured_token(f"{part(header)}.{part(of())}.", ANY, NOW_MS)


def test_the_options_of_the_login_module() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": " azp ",
        "unsecuredValidatorScopeClaimName": "",
        "unsecuredValidatorRequiredScope": "a  b",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
        "unsecuredLoginStringClaim_sub": "admin",
    }
    assert UnsecuredRules.of_options(options) == UnsecuredRules("azp", "scope", ("a", "b"), 3_000)
    with pytest.raises(ValueError, match="number of milliseconds"):
        UnsecuredRules.of_options({"unsecuredValidatorAllowableClockSkewMs": "-1"})
