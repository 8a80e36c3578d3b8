r"""SASL/OAUTHBEARER as a server runs it (RFC 7628): a bearer token in one message.

    n,a=<authorization id>,\x01auth=Bearer <token>\x01<extension>=<value>\x01\x01

The server answers a refused token with JSON that gives the reason; the client answers with `\x01`, and the
exchange fails. Extensions are parsed and ignored, as in Apache Kafka.

Source of the forms and of the messages: Apache Kafka's OAuthBearerSaslServer and
OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pykafka_broker.sasl.account import SASL_NAME, Account
from pykafka_broker.sasl.refusal import RefusedError, UnreadableTokenError, refused_in_public

OAUTHBEARER = "OAUTHBEARER"

#: The latest time, as in Java; a number in JSON may exceed it.
LATEST_MS = 2**63 - 1
#: The characters that Java's `trim` removes, and no others: a no-break space is a part of a name.
JAVA_SPACE = "".join(map(chr, range(0x21)))
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_INITIAL = re.compile(rf"n,(?:a=(?P<authorization_id>{SASL_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_CREDENTIAL = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
#: The client acknowledges the refusal of its token.
_ACKNOWLEDGED = b"\x01"


@dataclass(frozen=True, slots=True)
class BearerToken:
    """The claims of an accepted token."""

    principal_name: str
    #: In ms since 1970.
    expires_ms: int


class TokenError(Exception):
    """A refused token; the text is for this node's log, and quotes nothing of the token.

    `scope` is the required scope if the token lacks it.
    """

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope

    @property
    def told(self) -> str:
        """The JSON that the client gets."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":"{self.scope}"}}'


def principal_of(claims: Mapping[str, Any], name: str) -> str:
    """The user in the claim `name`, as the token has it.

    Raises:
        TokenError: the claim is missing, blank or no text; or its name has half of a surrogate pair, so that
            no record and no answer can hold it. Apache Kafka writes `?` for such a half, which makes one
            user of many.
    """
    principal = claims.get(name)
    if not isinstance(principal, str) or not principal.strip(JAVA_SPACE):
        raise TokenError(f"The token has no {name} that is a name")
    try:
        principal.encode()
    except UnicodeEncodeError:
        raise TokenError(f"The {name} of the token has half of a surrogate pair") from None
    return principal


#: Returns the claims of a token. Raises TokenError and UnreadableTokenError.
Validate = Callable[[str], BearerToken]


class OAuthBearerServer:
    """One exchange with a peer."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused: TokenError | None = None
        #: Set by an accepted token only: a refused one may name any user.
        self.user: str | None = None
        self.account: Account | None = None

    def respond(self, token: bytes) -> bytes:
        """The answer to the peer's next token: empty, or why its bearer token is refused.

        Raises:
            RefusedError: the message is malformed, or the peer has acknowledged the refusal.
            UnreadableTokenError: the scheme is not `Bearer`.
        """
        refused, self._refused = self._refused, None
        if token == _ACKNOWLEDGED and refused is not None:
            raise RefusedError(str(refused), told=refused.told)
        match = _INITIAL.fullmatch(token.decode("utf-8", "replace"))
        if match is None:
            raise RefusedError("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
        credential = _CREDENTIAL.fullmatch(pairs.get("auth", ""))
        if credential is None:
            raise RefusedError("Invalid OAUTHBEARER client first message: no bearer token")
        if credential["scheme"].lower() != "bearer":
            raise UnreadableTokenError("Invalid scheme in OAUTHBEARER client first message")
        try:
            accepted = self._validate(credential["token"])
        except TokenError as error:
            self._refused = error
            return error.told.encode()
        name, asked = accepted.principal_name, match["authorization_id"]
        self.user = name
        if asked not in (None, name):
            raise refused_in_public(
                f"Authentication failed: Client requested an authorization id ({asked}) that is different "
                f"from the token's principal name ({name})"
            )
        self.account = Account(name, expires_ms=accepted.expires_ms)
        return b""
