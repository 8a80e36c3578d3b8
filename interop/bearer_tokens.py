"""Let Apache Kafka's BrokerJwtValidator judge signed bearer tokens, plain ones and odd ones.

    python -m interop.bearer_tokens

Signs `tokens` with new keys, and keeps the public keys, the tokens and Apache Kafka's verdicts in
`interop/tests/golden/bearer_tokens.jsonl`, where `interop/tests/test_bearer_tokens.py` compares without Java.
Prints the tokens that ours judges otherwise, but for those of `ON_PURPOSE`.

The clock of both validators stands still at `NOW_MS`. Needs a JDK, not only a JRE: the Java side is compiled
on the fly.
"""

from __future__ import annotations

import base64
import json
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwk, jws

from pykafka_broker.sasl.oauth_bearer import TokenError
from pykafka_broker.sasl.signed_tokens import SignedRules, read_keys, signed_token
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parent / "oracle" / "BearerTokens.java"
GOLDEN = Path(__file__).parent / "tests" / "golden" / "bearer_tokens.jsonl"

NOW_MS = 1_700_000_000_500
NOW_S = NOW_MS // 1_000
RULES = SignedRules(issuer="https://issuer.example", audiences=frozenset({"kafka", "other"}))
CLAIMS: Mapping[str, Any] = {
    "sub": "alice",
    "iss": RULES.issuer,
    "aud": "kafka",
    "iat": NOW_S - 10,
    "exp": NOW_S + 3_600,
}
#: The keys that a listener has, if a case does not say otherwise.
PUBLISHED = ("rsa", "ec-256", "ec-384", "ec-521", "ed")
#: The public half of the key `rsa`, used as a secret.
PUBLIC = "public"
#: The tokens that ours judges otherwise on purpose, and why.
ON_PURPOSE: Mapping[str, str] = {
    "a secret key of the set": "a secret of two parties proves no issuer; only asymmetric algorithms count",
    "a key for another algorithm": "a key counts for the algorithm that its set names",
    "no kid, the second key fits": "every key that fits is tried, not only the first one",
    "two keys of one kid, the second fits": "every key that fits is tried, not only the first one",
    "claims: a lone surrogate": "Apache Kafka writes such a name as ?, so many users would be one",
    "claims: a comma at the end": "it is no JSON",
}
#: Kept beside the verdict in the golden file.
Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Token:
    """A token before it is signed."""

    what: str
    #: An object, or the text of the part.
    header: Mapping[str, Any] | str
    claims: Mapping[str, Any] | str
    #: The name of the key that signs it.
    key: str = "rsa"
    algorithm: str = "RS256"
    published: tuple[str, ...] = PUBLISHED
    #: Members of published keys, which replace theirs; None leaves one out.
    of_keys: Mapping[str, Any] = field(default_factory=dict)
    rules: SignedRules = RULES


def new_keys() -> dict[str, Any]:
    """Keys of every kind, by name."""
    with warnings.catch_warnings(action="ignore"):
        small = jwk.RSAKey.import_key(rsa.generate_private_key(65_537, 1_024), {"kid": "small"})
    of_rsa = jwk.RSAKey.generate_key(2_048, {"kid": "rsa"})
    pem = of_rsa.as_pem(private=False)
    return {
        "rsa": of_rsa,
        # joserfc refuses to import such a key.
        PUBLIC: jwk.OctKey(pem, pem),
        "twin": jwk.RSAKey.generate_key(2_048, {"kid": "rsa"}),
        "other": jwk.RSAKey.generate_key(2_048, {"kid": "other"}),
        "small": small,
        "ec-256": jwk.ECKey.generate_key("P-256", {"kid": "ec-256"}),
        "ec-384": jwk.ECKey.generate_key("P-384", {"kid": "ec-384"}),
        "ec-521": jwk.ECKey.generate_key("P-521", {"kid": "ec-521"}),
        "ed": jwk.OKPKey.generate_key("Ed25519", {"kid": "ed"}),
        "secret": jwk.OctKey.generate_key(512, {"kid": "secret"}),
    }


def tokens(keys: Mapping[str, Any]) -> Iterator[Token]:
    """Tokens of every kind."""
    yield from _signatures(keys)
    yield from _headers(keys)
    yield from _claims()
    yield from _texts()


def _signatures(keys: Mapping[str, Any]) -> Iterator[Token]:
    def signed(what: str, key: str = "rsa", algorithm: str = "RS256", **changes: Any) -> Token:
        header = {"alg": algorithm, "kid": keys[key].kid}
        return replace(Token(what, header, CLAIMS, key, algorithm), **changes)

    kinds = [(f"{kind}{bits}", "rsa") for kind in ("RS", "PS") for bits in (256, 384, 512)]
    kinds += [("ES256", "ec-256"), ("ES384", "ec-384"), ("ES512", "ec-521"), ("EdDSA", "ed")]
    for algorithm, key in kinds:
        yield signed(algorithm, key, algorithm)
    yield signed("a secret key of the set", "secret", "HS256", published=(*PUBLISHED, "secret"))
    header = {"alg": "none", "kid": "rsa"}
    yield Token("no signature", header, CLAIMS, algorithm="none")
    yield Token("no signature, but a last part", header, CLAIMS)
    yield Token("a public key as a secret", {"alg": "HS256", "kid": "rsa"}, CLAIMS, PUBLIC, "HS256")
    yield signed("the key of somebody else", "twin")
    yield signed("a key of 1,024 bits", "small", published=("small",))
    yield Token("ES256 with a key for ES384", {"alg": "ES256", "kid": "ec-384"}, CLAIMS, "ec-256", "ES256")
    yield Token("RS256 with a key for ES256", {"alg": "RS256", "kid": "ec-256"}, CLAIMS)
    yield Token("an unknown algorithm", {"alg": "RS1", "kid": "rsa"}, CLAIMS)
    yield Token("another case of the algorithm", {"alg": "rs256", "kid": "rsa"}, CLAIMS)
    yield Token("no algorithm", {"kid": "rsa"}, CLAIMS)
    yield Token("an algorithm that is a list", {"alg": ["RS256"], "kid": "rsa"}, CLAIMS)
    yield Token("no kid, one key fits", {"alg": "RS256"}, CLAIMS)
    yield Token("no kid, the first key fits", {"alg": "RS256"}, CLAIMS, published=("rsa", "other"))
    yield Token("no kid, the second key fits", {"alg": "RS256"}, CLAIMS, published=("other", "rsa"))
    yield Token("a kid that is null", {"alg": "RS256", "kid": None}, CLAIMS)
    yield Token("a kid that is a number", {"alg": "RS256", "kid": 5}, CLAIMS)
    yield Token("an unknown kid", {"alg": "RS256", "kid": "next"}, CLAIMS)
    yield signed("two keys of one kid, the first fits", published=("rsa", "twin"))
    yield signed("two keys of one kid, the second fits", published=("twin", "rsa"))
    yield signed("a key without a kid, a token with one", of_keys={"kid": None})
    yield Token("neither has a kid", {"alg": "RS256"}, CLAIMS, of_keys={"kid": None})
    yield signed("a key for encryption", of_keys={"use": "enc"})
    yield signed("a key for signatures", of_keys={"use": "sig"})
    yield signed("a key to verify with", of_keys={"key_ops": ["verify"]})
    yield signed("a key to encrypt with", of_keys={"key_ops": ["encrypt"]})
    yield signed("a key for this algorithm", of_keys={"alg": "RS256"})
    yield signed("a key for another algorithm", of_keys={"alg": "RS512"}, published=("rsa",))


def _headers(keys: Mapping[str, Any]) -> Iterator[Token]:
    # A certificate is opaque to a validator that looks keys up by kid; its size is that of 2,048 bits.
    certificate = base64.b64encode(bytes(range(256)) * 5).decode()
    parameters: Mapping[str, Mapping[str, Any]] = {
        "typ": {"typ": "at+jwt"},
        "pi.atm": {"pi.atm": "5k2d"},
        "nonce": {"nonce": "x"},
        "ver": {"ver": "1.0"},
        "foo, an object": {"foo": {"bar": [1, None, True]}},
        "x5c": {"x5c": [certificate]},
        "x5c, three certificates": {"x5c": [certificate] * 3},
        "x5c that is text": {"x5c": certificate},
        "x5t": {"x5t": "AAAA"},
        "x5u that is no URL": {"x5u": "x"},
        "jku": {"jku": "https://elsewhere.example/keys"},
        "jwk": {"jwk": keys["other"].as_dict(private=False)},
        "jwk that is text": {"jwk": "x"},
        "typ that is a number": {"typ": 5},
        "cty": {"cty": "application/json"},
        "cty of a nested token": {"cty": "JWT"},
        "cty that is a number": {"cty": 5},
        "crit, unknown": {"crit": ["foo"], "foo": 1},
        "crit, not in the header": {"crit": ["foo"]},
        "crit, empty": {"crit": []},
        "crit that is text": {"crit": "exp"},
        "crit that is null": {"crit": None},
        "crit, of RFC 7515": {"crit": ["kid"]},
        "crit, exp": {"crit": ["exp"], "exp": 1},
        "crit, b64": {"crit": ["b64"], "b64": True},
        "b64": {"b64": True},
        "b64, false": {"b64": False},
        "b64, false and critical": {"crit": ["b64"], "b64": False},
        "enc": {"enc": "A128GCM"},
        "zip": {"zip": "DEF"},
    }
    for what, more in parameters.items():
        yield Token(f"header: {what}", {"alg": "RS256", "kid": "rsa", **more}, CLAIMS)


def _claims() -> Iterator[Token]:
    header = {"alg": "RS256", "kid": "rsa"}
    skew = RULES.clock_skew_s
    values: Mapping[str, tuple[Any, ...]] = {
        "exp": (None, NOW_S - skew, NOW_S - skew + 1, NOW_S + 0.5, "soon", True, -1, 0, [NOW_S + 60]),
        "iat": (None, NOW_S + 3_600, NOW_S + 3_601, NOW_S - 0.5, "now", False, -1, 0),
        "nbf": (NOW_S + skew, NOW_S + skew + 1, NOW_S + 0.5, -1, "now", True, NOW_S + 4_000),
        "iss": (None, "https://issuer.example/", "", [RULES.issuer], 5),
        "aud": (
            None,
            "other",
            "third",
            "",
            ["third", "kafka"],
            ["third"],
            [],
            [5],
            ["kafka", 5],
            5,
            {"a": 1},
        ),
        "sub": (None, "", " ", " alice ", "\t\x1balice\n", "\u00a0", "\u00a0alice", "\u00e4\U0001f600"),
        "jti": ("x", "", 5, ["x"], True),
    }
    changes = [(name, value) for name, each in values.items() for value in each]
    changes += [("sub", value) for value in (5, True, ["alice"])]
    changes += [("scope", value) for value in ("read", "read write", "", " ", "\u00a0", 5, {"a": 1})]
    changes += [("scope", value) for value in (["read", "write"], ["a", " a "], [], [1], [""], [None])]
    for name, value in changes:
        yield Token(f"claim: {name} {json.dumps(value)}", header, _changed({name: value}))
    yield Token("a time beyond Java's", header, _changed({"exp": 2**63 // 1_000 + 1}))
    yield Token("the latest time of Java", header, _changed({"exp": (2**63 - 1) // 1_000}))
    yield Token("a time of more than 64 bits", header, _changed({"exp": 2**64}))
    yield Token("a time in exponents", header, _text_of(CLAIMS, exp="1.7e10"))
    yield Token("a time far too large", header, _text_of(CLAIMS, exp="1e300"))
    yield Token("exp before iat", header, _changed({"iat": NOW_S + 20, "exp": NOW_S + 10}))
    anyone = replace(RULES, issuer=None)
    for value in (None, "x", 5):
        changed = _changed({"iss": value})
        yield Token(f"no issuer expected: {json.dumps(value)}", header, changed, rules=anyone)
    nothing = replace(RULES, audiences=frozenset())
    for value in (None, "kafka", [], 5):
        changed = _changed({"aud": value})
        yield Token(f"no audience expected: {json.dumps(value)}", header, changed, rules=nothing)
    by_claim = replace(RULES, principal_claim="azp", scope_claim="scp")
    for change in (
        {"azp": "job"},
        {"azp": "job", "sub": None},
        {"azp": "job", "sub": 5},
        {"azp": 5},
        {"azp": "job", "scope": ""},
        {"azp": "job", "scp": ""},
        {"azp": "job", "jti": 5},
    ):
        yield Token(f"sub is azp: {json.dumps(change)}", header, _changed(change), rules=by_claim)
    nested = replace(RULES, principal_claim="user.name")
    yield Token("a dotted claim", header, _changed({"user.name": "alice"}), rules=nested)
    yield Token("a nested claim", header, _changed({"user": {"name": "alice"}}), rules=nested)


def _texts() -> Iterator[Token]:
    """Parts that are no JSON, or odd JSON."""
    header, claims = '{"alg":"RS256","kid":"rsa"}', json.dumps(dict(CLAIMS))
    more = claims.removesuffix("}")
    for what, text in {
        "a duplicate sub": more + ',"sub":"root"}',
        "a duplicate of an escaped name": more + ',"\\u0073ub":"root"}',
        "a duplicate claim of no meaning": more + ',"a":1,"a":1}',
        "a duplicate in an object": more + ',"a":{"b":1,"b":2}}',
        "a lone surrogate": more.replace("alice", "\\ud800") + "}",
        "a lone surrogate elsewhere": more + ',"a":"\\ud800"}',
        "a pair of surrogates": more.replace("alice", "\\ud83d\\ude00") + "}",
        "a list": "[1]",
        "text": '"x"',
        "null": "null",
        "nothing": "",
        "no JSON": "x",
        "white space around": f" {claims}\n",
        "text after it": claims + "x",
        "an object after it": claims + claims,
        "NaN": more + ',"a":NaN}',
        "Infinity": more + ',"a":Infinity}',
        "a comma at the end": more + ",}",
        "a byte order mark": "\ufeff" + claims,
    }.items():
        yield Token(f"claims: {what}", header, text)
    more = header.removesuffix("}")
    for what, text in {
        "a duplicate alg": more + ',"alg":"none"}',
        "a duplicate kid": more + ',"kid":"rsa"}',
        "a duplicate of no meaning": more + ',"a":1,"a":1}',
        "a lone surrogate": more + ',"a":"\\ud800"}',
        "a list": "[1]",
        "nothing": "",
        "no JSON": "x",
        "text after it": header + "x",
    }.items():
        yield Token(f"header: {what}", text, claims)


def _changed(change: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}


def _text_of(claims: Mapping[str, Any], **texts: str) -> str:
    members = {name: json.dumps(value) for name, value in claims.items()} | texts
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def case_of(token: Token, keys: Mapping[str, Any]) -> Case:
    """The token, signed, and what a listener knows."""
    header, claims = (
        part if isinstance(part, str) else json.dumps(part) for part in (token.header, token.claims)
    )
    signed = f"{_encoded(header.encode())}.{_encoded(claims.encode())}"
    key = keys[token.key]
    with warnings.catch_warnings(action="ignore"):
        algorithm = jws.JWSRegistry(algorithms=[token.algorithm]).get_alg(token.algorithm)
    rules = {name: value for name, value in asdict(token.rules).items() if value != getattr(RULES, name)}
    if "audiences" in rules:
        rules["audiences"] = sorted(rules["audiences"])
    return {
        "what": token.what,
        **({"keys": token.published} if token.published != PUBLISHED else {}),
        **({"of_keys": token.of_keys} if token.of_keys else {}),
        **({"rules": rules} if rules else {}),
        "token": f"{signed}.{_encoded(algorithm.sign(signed.encode(), key))}",
    }


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def key_set_of(case: Case, public: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The keys that the listener of a case has."""
    of_keys = case.get("of_keys", {})
    found = [{**public[name], **of_keys} for name in case.get("keys", PUBLISHED)]
    return [{name: value for name, value in each.items() if value is not None} for each in found]


def rules_of(case: Case) -> SignedRules:
    changes = dict(case.get("rules", {}))
    if "audiences" in changes:
        changes["audiences"] = frozenset(changes["audiences"])
    return replace(RULES, **changes)


def by_ours(case: Case, public: Mapping[str, Any]) -> list[Any] | None:
    """The user and when the token expires; None if it is refused."""
    keys = read_keys(json.dumps({"keys": key_set_of(case, public)}).encode())
    try:
        token = signed_token(case["token"], keys, rules_of(case), NOW_MS)
    except TokenError:
        return None
    return [token.principal_name, token.expires_ms]


def by_apache(cases: list[Case], public: Mapping[str, Any]) -> Iterator[list[Any] | str]:
    """The same, by Apache Kafka; the reason if a token is refused."""
    lines = []
    for case in cases:
        rules = asdict(rules_of(case))
        rules["audiences"] = sorted(rules["audiences"])
        keys = key_set_of(case, public)
        lines.append(json.dumps({"keys": keys, "rules": rules, "now_ms": NOW_MS, "token": case["token"]}))
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(cases), run.stderr
    for answer in answers:
        yield answer.get("refusal") or [answer["user"], answer["expires_ms"]]


def main() -> None:
    keys = new_keys()
    public = {name: key.as_dict(private=name == "secret") for name, key in keys.items() if name != PUBLIC}
    cases = [case_of(token, keys) for token in tokens(keys)]
    lines = [json.dumps(public)]
    for case, told in zip(cases, by_apache(cases, public), strict=True):
        verdict = None if isinstance(told, str) else told
        ours = by_ours(case, public)
        if ours != verdict and case["what"] not in ON_PURPOSE:
            print(f"{case['what']}: Apache Kafka {told}; ours {ours}")
        lines.append(json.dumps({**case, "verdict": verdict}))
    GOLDEN.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(cases)} tokens")


if __name__ == "__main__":
    main()
