"""How a client reaches a secured listener, and as whom: said once, in the words of each client."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

JAAS = "org.apache.kafka.common.security"
OAUTHBEARER = "OAUTHBEARER"
TIMEOUT_S = 10


@dataclass(frozen=True)
class Login:
    """Paths are of PEM files; what is not used is empty."""

    #: The authority that has signed the certificates of the brokers.
    ca: str
    #: A key and its certificate, by which the client is known.
    certificate: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    #: Whether user and password are those of a delegation token.
    is_token: bool = False
    #: Where a bearer token is given for user and password.
    token_endpoint: str = ""

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.mechanism else "SSL"

    def bearer_token(self) -> str:
        """A new one, as an OAuth client asks for it with its id and its secret (RFC 6749, 4.4)."""
        asked = {
            "grant_type": "client_credentials",
            "client_id": self.user,
            "client_secret": self.password,
        }
        data = urllib.parse.urlencode(asked).encode()
        with urllib.request.urlopen(self.token_endpoint, data, TIMEOUT_S) as answer:
            return str(json.load(answer)["access_token"])

    def for_librdkafka(self) -> dict[str, str]:
        settings = {"security.protocol": self.protocol, "ssl.ca.location": self.ca}
        if self.certificate:
            settings |= {
                "ssl.certificate.location": self.certificate,
                "ssl.key.location": self.certificate,
            }
        if self.mechanism == OAUTHBEARER:
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": self.user,
                "sasl.oauthbearer.client.secret": self.password,
                "sasl.oauthbearer.token.endpoint.url": self.token_endpoint,
            }
        elif self.mechanism:
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        return settings

    def for_java(self) -> dict[str, str]:
        settings = {
            "security.protocol": self.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
        }
        if self.certificate:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.certificate}
        if self.mechanism:
            settings |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._jaas()}
        if self.mechanism == OAUTHBEARER:
            handler = f"{JAAS}.oauthbearer.OAuthBearerLoginCallbackHandler"
            settings |= {
                "sasl.oauthbearer.token.endpoint.url": self.token_endpoint,
                "sasl.login.callback.handler.class": handler,
            }
        return settings

    def _jaas(self) -> str:
        if self.mechanism == OAUTHBEARER:
            return (
                f"{JAAS}.oauthbearer.OAuthBearerLoginModule required "
                f'clientId="{self.user}" clientSecret="{self.password}";'
            )
        module = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        token = " tokenauth=true" if self.is_token else ""
        return (
            f'{JAAS}.{module}LoginModule required username="{self.user}" password="{self.password}"{token};'
        )

    def for_driver(self) -> str:
        """As a driver gets it: JSON, with a bearer token that is good for its whole life."""
        token = self.bearer_token() if self.mechanism == OAUTHBEARER else ""
        told: dict[str, Any] = {
            "ca": self.ca,
            "certificate": self.certificate,
            "mechanism": self.mechanism,
            "user": self.user,
            "password": self.password,
            "is_token": self.is_token,
            "bearer_token": token,
            "librdkafka": self.for_librdkafka(),
        }
        return json.dumps(told)
