"""The order of an exchange, what a peer is told, and how long its session lasts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.exchange import OfferedMechanism, OutOfOrderError, SaslExchange, Session
from pykafka_broker.sasl.plain import PlainServer, plain_token
from pykafka_broker.sasl.refusal import UnreadableTokenError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, credential_of, salted_password
from pykafka_broker.sasl.scram_server import ScramEntry, ScramServer

SCRAM = SCRAM_MECHANISMS["SCRAM-SHA-256"]
CREDENTIAL = credential_of(SCRAM, salted_password(SCRAM, "secret", b"salt", 4096), b"salt", 4096)
GOOD = plain_token("alice", "secret")
WRONG = plain_token("alice", "wrong")


def exchange(
    max_reauth_ms: int = 0, expires_ms: int | None = None, before: Session | None = None
) -> SaslExchange:
    def find(name: str, by_token: bool) -> ScramEntry | None:
        return ScramEntry(CREDENTIAL, Account("alice", expires_ms)) if name == "alice" else None

    return SaslExchange(
        {
            "PLAIN": OfferedMechanism(
                lambda: PlainServer({"alice": "secret", "bob": "secret"}), max_reauth_ms
            ),
            "SCRAM-SHA-256": OfferedMechanism(lambda: ScramServer(SCRAM, find, "srv"), max_reauth_ms),
        },
        before,
    )


STEPS: dict[str, Callable[[SaslExchange], object]] = {
    "versions": lambda side: side.on_versions(answered=True),
    "versions refused": lambda side: side.on_versions(answered=False),
    "plain": lambda side: side.on_handshake(1, "PLAIN"),
    "unknown": lambda side: side.on_handshake(1, "NONE"),
    "good": lambda side: side.on_token(GOOD, 0),
    "wrong": lambda side: side.on_token(WRONG, 0),
    "other": lambda side: side.on_other_request("METADATA"),
}


def is_legal(steps: list[str]) -> bool:
    """Any number of refused ApiVersions, at most one that was answered, a handshake, the password."""
    while steps[:1] == ["versions refused"]:
        steps = steps[1:]
    if steps[:1] == ["versions"]:
        steps = steps[1:]
    return steps == ["plain", "good"]


def test_of_all_courses_only_the_legal_ones_show_who_the_peer_is() -> None:
    seen = 0
    for length in range(1, 6):
        for steps in product(STEPS, repeat=length):
            side, legal_from = exchange(), None
            for number, step in enumerate(steps, start=1):
                try:
                    STEPS[step](side)
                except OutOfOrderError:
                    break
                if side.session is not None and legal_from is None:
                    legal_from = number
            expected = next((n for n in range(1, length + 1) if is_legal(list(steps[:n]))), None)
            assert legal_from == expected, steps
            seen += expected is not None
    assert seen


def test_an_unknown_mechanism() -> None:
    answer = exchange().on_handshake(1, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert answer.closes


def test_another_request_after_the_handshake_is_told_so() -> None:
    side = exchange()
    side.on_handshake(1, "PLAIN")
    answer = side.on_other_request("METADATA")
    assert (answer.error_code, answer.closes) == (ErrorCode.ILLEGAL_SASL_STATE, True)
    assert answer.error_message == "Unexpected Kafka request of type METADATA during SASL authentication."


def test_tokens_are_bare_after_the_first_version_of_the_handshake() -> None:
    side = exchange()
    side.on_handshake(0, "PLAIN")
    expected = [side.expects_bare_token]
    side.on_token(GOOD, 0)
    expected.append(side.expects_bare_token)
    assert expected == [True, False]


@pytest.mark.parametrize(
    ("mechanism", "token", "message"),
    [
        ("PLAIN", WRONG, "Authentication failed: Invalid username or password"),
        ("PLAIN", b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (
            "SCRAM-SHA-256",
            b"",
            "Authentication failed during authentication due to invalid credentials "
            "with SASL mechanism SCRAM-SHA-256",
        ),
    ],
)
def test_what_a_refused_peer_is_told(mechanism: str, token: bytes, message: str) -> None:
    side = exchange()
    side.on_handshake(1, mechanism)
    answer = side.on_token(token, 0)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (answer.error_message, answer.token, answer.closes) == (message, b"", True)
    with pytest.raises(OutOfOrderError):
        side.on_token(GOOD, 0)


def test_nothing_follows_an_unreadable_token() -> None:
    side = exchange()
    side.on_handshake(1, "SCRAM-SHA-256")
    side.on_token(b"n,,n=alice,r=cli", 0)
    with pytest.raises(UnreadableTokenError):
        side.on_token(b"c=biws,r=clisrv,p=", 0)
    with pytest.raises(OutOfOrderError):
        side.on_token(b"n,,n=alice,r=cli", 0)


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_ms", "lifetime_ms"),
    [
        (0, None, None),
        (500, None, 500),
        (0, 1300, 300),
        (500, 1300, 300),
        (200, 1300, 200),
        (500, 900, 0),
    ],
)
def test_how_long_a_session_lasts(
    max_reauth_ms: int, expires_ms: int | None, lifetime_ms: int | None
) -> None:
    side = exchange(max_reauth_ms, expires_ms)
    client = ScramClient(SCRAM, "alice", "secret", "cli")
    side.on_handshake(1, "SCRAM-SHA-256")
    first = side.on_token(client.first(), 1000)
    assert first.lifetime_ms == 0
    last = side.on_token(client.final(first.token), 1000)
    client.verify(last.token)
    assert last.lifetime_ms == (lifetime_ms or 0)
    assert side.session == Session("SCRAM-SHA-256", Account("alice", expires_ms), lifetime_ms)


BEFORE = Session("PLAIN", Account("alice"), 1000)
BEFORE_FOR_EVER = Session("PLAIN", Account("alice"), None)


def test_authenticating_again() -> None:
    side = exchange(max_reauth_ms=700, before=BEFORE)
    side.on_handshake(1, "PLAIN")
    assert side.on_token(GOOD, 0).lifetime_ms == 700
    assert side.session == Session("PLAIN", Account("alice"), 700)


def test_authenticating_again_is_for_sessions_that_end_and_at_most_once_per_second() -> None:
    assert not BEFORE_FOR_EVER.is_renewed(None, is_over=False)
    assert BEFORE.is_renewed(None, is_over=False)
    assert not BEFORE.is_renewed(999, is_over=False)
    assert BEFORE.is_renewed(1_000, is_over=True)
    with pytest.raises(OutOfOrderError, match="too often"):
        BEFORE.is_renewed(999, is_over=True)


def test_authenticating_again_with_a_mechanism_that_is_not_offered_gets_no_answer() -> None:
    assert not exchange(before=BEFORE).on_handshake(1, "GSSAPI").is_sent
    assert exchange().on_handshake(1, "GSSAPI").is_sent


def test_authenticating_again_begins_with_the_handshake() -> None:
    with pytest.raises(OutOfOrderError):
        exchange(before=BEFORE).on_versions(answered=True)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (
            plain_token("bob", "secret"),
            "Cannot change principals during re-authentication from User.alice: User.bob",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_authenticating_again_as_nobody_or_somebody_else(token: bytes, message: str) -> None:
    side = exchange(before=BEFORE)
    side.on_handshake(1, "PLAIN")
    answer = side.on_token(token, 0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert side.session is None


def test_authenticating_again_with_another_mechanism_fails_at_the_token() -> None:
    side = exchange(before=BEFORE)
    assert side.on_handshake(1, "SCRAM-SHA-256").error_code == ErrorCode.NONE
    with pytest.raises(OutOfOrderError):
        side.on_token(b"n,,n=alice,r=cli", 0)
