"""Where a client's bearer tokens come from: what its keys and the options of its login module ask for."""

from __future__ import annotations

import pytest

from pykafka_broker.sasl.oauth_bearer import OAuthBearerServer
from pykafka_broker.sasl.oauth_bearer_client import first_message
from pykafka_broker.sasl.oauth_login import (
    FETCHING_HANDLER,
    LOGIN_HANDLER,
    TOKEN_URL,
    UNSECURED_LOGIN_HANDLER,
    OAuthLogin,
    TokenEndpoint,
    TokenFile,
    UnsecuredTokens,
    oauth_login,
)
from pykafka_broker.sasl.token_life import RefreshRules, TokenLife, refresh_at_ms, token_life
from pykafka_broker.sasl.unsecured_login import unsecured_login_token
from pykafka_broker.sasl.unsecured_tokens import UnsecuredRules, unsecured_token
from tests.support.oauth import claims, signed, unsigned

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ALICE = {"unsecuredLoginStringClaim_sub": "alice"}
ENDPOINT = {
    TOKEN_URL: "https://issuer.example/token",
    "sasl.oauthbearer.client.credentials.client.id": "node",
    "sasl.oauthbearer.client.credentials.client.secret": "node-secret",
}


def login(keys: dict[str, str] | None = None, **options: str) -> OAuthLogin:
    return oauth_login((keys or {}).get, options)


class TestASource:
    def test_is_the_login_module_where_nothing_else_is_named(self) -> None:
        assert login({}, **ALICE).source == UnsecuredTokens(ALICE)

    def test_is_a_file(self) -> None:
        assert login({TOKEN_URL: "file:///run/my%20token"}).source == TokenFile("/run/my token")

    def test_is_an_identity_provider(self) -> None:
        source = login(
            {**ENDPOINT, "sasl.oauthbearer.scope": "kafka", LOGIN_HANDLER: FETCHING_HANDLER}
        ).source
        assert source == TokenEndpoint(ENDPOINT[TOKEN_URL], "node", "node-secret", "kafka")

    def test_may_have_its_credentials_in_the_login_module_before_which_keys_count(self) -> None:
        options = {"clientId": "other", "clientSecret": "other-secret", "scope": "write"}
        source = login({TOKEN_URL: "http://127.0.0.1/token"}, **options).source
        assert source == TokenEndpoint("http://127.0.0.1/token", "other", "other-secret", "write")
        source = login(ENDPOINT, **options).source
        assert source == TokenEndpoint(ENDPOINT[TOKEN_URL], "node", "node-secret", "write")

    def test_has_time_outs_pauses_and_tls_of_its_own(self) -> None:
        times = {
            "sasl.login.connect.timeout.ms": "1",
            "sasl.login.read.timeout.ms": "2",
            "sasl.login.retry.backoff.ms": "3",
            "sasl.login.retry.backoff.max.ms": "4",
        }
        source = login({**ENDPOINT, **times}, **{"ssl.truststore.type": "PEM"}).source
        assert source == TokenEndpoint(
            ENDPOINT[TOKEN_URL], "node", "node-secret", None, 1, 2, 3, 4, {"ssl.truststore.type": "PEM"}
        )

    def test_shows_no_secret(self) -> None:
        assert "secret" not in repr(login(ENDPOINT)).replace("client_secret", "")
        assert "alice" not in repr(login({}, **ALICE))

    @pytest.mark.parametrize(
        "keys, options, told",
        [
            ({}, {}, "No option unsecuredLoginStringClaim_sub names the user"),
            ({}, {"unsecuredLoginStringClaim_sub": " "}, "names the user"),
            ({}, {**ALICE, "unsecuredLoginStringClaim_exp": "1"}, "this claim is made from"),
            ({}, {**ALICE, "unsecuredLoginNumberClaim_n": "x"}, "must be a number"),
            ({}, {**ALICE, "unsecuredLoginLifetimeSeconds": "x"}, "must be a number of seconds"),
            ({}, {**ALICE, "unsecuredLoginExtension_auth": "x"}, "cannot be the name of an extension"),
            ({LOGIN_HANDLER: "com.example.Handler"}, ALICE, "names code for Java"),
            ({LOGIN_HANDLER: FETCHING_HANDLER}, {}, f"asks for {TOKEN_URL}"),
            ({LOGIN_HANDLER: UNSECURED_LOGIN_HANDLER, **ENDPOINT}, {}, "names the user"),
            ({TOKEN_URL: "ftp://issuer.example"}, {}, "no URL that begins with https:, http: or file:"),
            ({TOKEN_URL: "https://issuer.example"}, {"clientId": "node"}, "client.credentials.client.secret"),
            ({**ENDPOINT, "sasl.oauthbearer.jwt.retriever.class": "com.example.R"}, {}, "code for Java"),
            ({**ENDPOINT, "sasl.login.read.timeout.ms": "soon"}, {}, "must be a number"),
            ({**ENDPOINT, "sasl.login.retry.backoff.ms": "-1"}, {}, "must not be negative"),
            (ENDPOINT, {"extension_trace-id": "1"}, "cannot be the name of an extension"),
            (ENDPOINT, {"extension_trace": "\x01"}, "has a value that cannot be sent"),
        ],
    )
    def test_that_cannot_be_had_is_told(
        self, keys: dict[str, str], options: dict[str, str], told: str
    ) -> None:
        with pytest.raises(ValueError, match=told):
            login(keys, **options)


class TestATokenOfTheLoginModule:
    def test_is_accepted_by_a_server_that_takes_such(self) -> None:
        options = {
            **ALICE,
            "unsecuredLoginNumberClaim_level": "3",
            "unsecuredLoginListClaim_scope": "|read|write",
            "unsecuredLoginLifetimeSeconds": "60",
        }
        token = unsecured_login_token(options, NOW_MS)
        rules = UnsecuredRules(required_scope=("read", "write"))
        accepted = unsecured_token(token, rules, NOW_MS)
        assert (accepted.principal_name, accepted.expires_ms) == ("alice", NOW_MS + 60_000)
        assert token_life(token, "sub") == TokenLife("alice", NOW_MS, NOW_MS + 60_000)

    def test_may_name_its_user_by_another_claim(self) -> None:
        options = {"unsecuredLoginPrincipalClaimName": "user", "unsecuredLoginStringClaim_user": "bob"}
        assert token_life(unsecured_login_token(options, NOW_MS), "user").principal_name == "bob"


class TestAMessage:
    def test_is_understood_by_the_server_with_its_extensions(self) -> None:
        token = unsecured_login_token(ALICE, NOW_MS)
        server = OAuthBearerServer(lambda text: unsecured_token(text, UnsecuredRules(), NOW_MS))
        assert server.respond(first_message(token, {"traceId": "1 2", "tenant": "a"})) == b""
        assert server.account is not None
        assert server.account.name == "alice"


class TestTheLifeOfAToken:
    def test_is_read_without_its_signature(self) -> None:
        assert token_life(signed(claims(NOW_MS)), "sub") == TokenLife("alice", NOW_MS, NOW_MS + HOUR_MS)
        assert token_life(unsigned(claims(NOW_MS, iat=None)), "sub").issued_ms is None

    @pytest.mark.parametrize(
        "token, told",
        [
            ("", "three parts"),
            ("a.b", "three parts"),
            ("a.!.c", "claims cannot be read"),
            ("a.W10.c", "claims cannot be read"),
            (unsigned(claims(NOW_MS, sub=None)), "no claim sub"),
            (unsigned(claims(NOW_MS, sub=7)), "no claim sub"),
            (unsigned(claims(NOW_MS, exp=None)), "no claim exp"),
            (unsigned(claims(NOW_MS, exp="soon")), "exp is no time"),
            (unsigned(claims(NOW_MS, iat=True)), "iat is no time"),
        ],
    )
    def test_that_cannot_be_read_is_told(self, token: str, told: str) -> None:
        with pytest.raises(ValueError, match=told):
            token_life(token, "sub")


class TestTheNextToken:
    """As Apache Kafka's ExpiringCredentialRefreshingLogin has it."""

    @pytest.mark.parametrize(
        "lived_ms, life_ms, dice, after_ms",
        [
            (0, HOUR_MS, 0.0, int(0.8 * HOUR_MS)),
            (0, HOUR_MS, 1.0, int(0.85 * HOUR_MS)),
            # Fetched when half of its life was over: the share is of the whole.
            (HOUR_MS // 2, HOUR_MS, 0.0, int(0.3 * HOUR_MS)),
            # A day: 80 % leave more than the buffer.
            (0, 24 * HOUR_MS, 0.0, int(0.8 * 24 * HOUR_MS)),
            # 20 minutes: the buffer of five comes before the share of 80 %.
            (0, 1_200_000, 0.0, 900_000),
            # Most of it is over already: no sooner than the least period.
            (HOUR_MS - 500_000, HOUR_MS, 0.0, 60_000),
            # No room for both limits.
            (0, 100_000, 0.5, int(0.825 * 100_000)),
        ],
    )
    def test_is_fetched_in_time(self, lived_ms: int, life_ms: int, dice: float, after_ms: int) -> None:
        issued_ms = NOW_MS - lived_ms
        life = TokenLife("alice", issued_ms, issued_ms + life_ms)
        assert refresh_at_ms(life, NOW_MS, RefreshRules(), dice) == pytest.approx(NOW_MS + after_ms, abs=1)

    def test_goes_by_the_time_of_fetching_where_a_token_does_not_say(self) -> None:
        life = TokenLife("alice", None, NOW_MS + HOUR_MS)
        assert refresh_at_ms(life, NOW_MS, RefreshRules(0.5, 0.0), 0.9) == NOW_MS + HOUR_MS // 2
