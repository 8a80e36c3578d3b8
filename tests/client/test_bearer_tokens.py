"""The bearer tokens of a client: fetched in time, from where its login says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.client.bearer_tokens import (
    RETRY_MS,
    BearerTokens,
    TokenUnavailableError,
    new_bearer_tokens,
)
from pykafka_broker.client.token_endpoint import RefusedRequestError, fetch_token
from pykafka_broker.sasl.oauth_login import OAuthLogin, TokenEndpoint, TokenFile, UnsecuredTokens
from pykafka_broker.sasl.token_life import token_life
from pykafka_broker.testing.issuer import Issuer, issuing
from pykafka_broker.testing.processes import free_port
from tests.support.oauth import claims, unsigned

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LOGIN = OAuthLogin(TokenFile("/token"))


class Provider:
    """Hands out tokens of an hour, numbered, as long as it works."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.given = 0
        self.error: Exception | None = None

    def retrieve(self) -> str:
        if self.error is not None:
            raise self.error
        self.given += 1
        return unsigned(claims(self.now_ms, jti=self.given))

    def tokens(self) -> BearerTokens:
        return BearerTokens(LOGIN, self.retrieve, "The token", now_ms=lambda: self.now_ms, dice=lambda: 0.0)


@pytest.fixture
def provider() -> Provider:
    return Provider()


class TestTokens:
    def test_are_fetched_when_most_of_the_one_before_is_over(self, provider: Provider) -> None:
        tokens = provider.tokens()
        assert tokens.is_stale
        tokens.refresh()
        first = tokens.token
        provider.now_ms += HOUR_MS * 8 // 10 - 1
        tokens.refresh()
        assert (tokens.is_stale, tokens.token) == (False, first)
        provider.now_ms += 1
        assert tokens.is_stale
        tokens.refresh()
        assert tokens.token != first
        assert provider.given == 2

    @pytest.mark.parametrize("error", [OSError("no route"), ValueError("no token")])
    def test_before_the_first_there_is_nothing_to_connect_with(
        self, provider: Provider, error: Exception
    ) -> None:
        provider.error = error
        tokens = provider.tokens()
        with pytest.raises(TokenUnavailableError, match=f"The token cannot be had: {error}"):
            tokens.refresh()
        with pytest.raises(TokenUnavailableError, match="was not fetched yet"):
            _ = tokens.token
        provider.error = None
        tokens.refresh()
        assert tokens.token

    def test_the_one_before_is_used_while_no_other_can_be_had(self, provider: Provider) -> None:
        tokens = provider.tokens()
        tokens.refresh()
        first = tokens.token
        provider.error = OSError("no route")
        provider.now_ms += HOUR_MS * 9 // 10
        tokens.refresh()
        assert (tokens.token, tokens.is_stale) == (first, False)
        provider.now_ms += RETRY_MS
        assert tokens.is_stale
        provider.now_ms = NOW_MS + HOUR_MS
        with pytest.raises(TokenUnavailableError, match="no route"):
            tokens.refresh()

    def test_that_cannot_be_read_are_not_used(self, provider: Provider) -> None:
        tokens = BearerTokens(LOGIN, lambda: "secret-token", "The token", now_ms=lambda: NOW_MS)
        with pytest.raises(TokenUnavailableError, match="three parts") as refusal:
            tokens.refresh()
        assert "secret" not in str(refusal.value)


def test_a_file_is_read_again_for_each_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = new_bearer_tokens(OAuthLogin(TokenFile(str(file))))
    with pytest.raises(TokenUnavailableError, match="No such file"):
        tokens.refresh()
    written = unsigned(claims(time.time_ns() // 1_000_000))
    file.write_text(f"{written}\n")
    tokens.refresh()
    assert tokens.token == written


def test_the_login_module_makes_tokens_that_begin_now() -> None:
    tokens = new_bearer_tokens(OAuthLogin(UnsecuredTokens({"unsecuredLoginStringClaim_sub": "alice"})))
    tokens.refresh()
    life = token_life(tokens.token, "sub")
    assert life.principal_name == "alice"
    assert abs(life.expires_ms - HOUR_MS - time.time_ns() // 1_000_000) < 60_000


class TestAnIdentityProvider:
    @pytest.fixture
    def issuer(self) -> Iterator[Issuer]:
        with issuing({"node": "node-secret"}) as issuer:
            yield issuer

    def test_gives_a_token_for_the_secret(self, issuer: Issuer) -> None:
        endpoint = TokenEndpoint(issuer.token_endpoint, "node", "node-secret", "kafka")
        tokens = new_bearer_tokens(OAuthLogin(endpoint))
        tokens.refresh()
        assert token_life(tokens.token, "sub").principal_name == "node"

    def test_is_not_asked_again_when_it_refuses_the_secret(self, issuer: Issuer) -> None:
        endpoint = TokenEndpoint(issuer.token_endpoint, "node", "wrong-secret")

        def sleep(_: float) -> None:
            pytest.fail("it was asked again")

        with pytest.raises(RefusedRequestError, match="status 401: invalid_client"):
            fetch_token(endpoint, pytest.fail, sleep=sleep)

    def test_is_asked_again_later_each_time_and_not_for_ever(self) -> None:
        now = 0.0
        pauses: list[float] = []

        def sleep(pause: float) -> None:
            nonlocal now
            pauses.append(round(pause, 3))
            now += pause

        url = f"http://127.0.0.1:{free_port()}"
        endpoint = TokenEndpoint(url, "node", "s", retry_backoff_ms=100, retry_backoff_max_ms=1_000)
        with pytest.raises(ConnectionRefusedError):
            fetch_token(endpoint, pytest.fail, sleep=sleep, monotonic=lambda: now)
        assert pauses == [0.1, 0.2, 0.4, 0.3]
