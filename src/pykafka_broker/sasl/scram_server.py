"""SCRAM as a server runs it: two tokens, and the password is never sent.

An unknown user is refused at the first token, as by Apache Kafka, and a wrong password at the second, both
with the same message and after the same delay (`connection.failed.authentication.delay.ms`). The server never
hashes a password: checking a proof takes some microseconds.

As in Apache Kafka the channel binding is not compared, and all extensions are ignored but `tokenauth=true`:
with it the name is the id of a delegation token. Source: RFC 5802; Apache Kafka's ScramSaslServer and
ScramMessages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from pykafka_broker.sasl.account import SASL_NAME, Account
from pykafka_broker.sasl.refusal import RefusedError, UnreadableTokenError, other_authorization_id
from pykafka_broker.sasl.scram_keys import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    exclusive_or,
    signature,
    unescaped,
)

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_SYMBOL = "[a-zA-Z0-9/+]"
_BASE64 = f"(?:{_SYMBOL}{{4}})*(?:{_SYMBOL}{{3}}=|{_SYMBOL}{{2}}==)?"

_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{SASL_NAME}))?,(?:m={_VALUE},)?"
    rf"(?P<bare>n=(?P<name>{SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    rf"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)


@dataclass(frozen=True, slots=True)
class ScramEntry:
    """The credential and the account of a user or a delegation token."""

    credential: ScramCredential
    account: Account


#: Returns the entry of a user, or with True that of the delegation token with this id; None if unknown.
FindEntry = Callable[[str, bool], ScramEntry | None]


class ScramServer:
    """One exchange with a peer.

    `nonce` is random text, new for each exchange.
    """

    def __init__(self, mechanism: ScramMechanism, find: FindEntry, nonce: str) -> None:
        self._mechanism = mechanism
        self._find = find
        self._server_nonce = nonce
        self._entry: ScramEntry | None = None
        self._nonce = ""
        #: The client's first and the server's first message, as both sign them.
        self._said = ""
        self.user: str | None = None
        self.account: Account | None = None

    @property
    def complete(self) -> bool:
        return self.account is not None

    def respond(self, token: bytes) -> bytes:
        """The answer to the peer's next token. No call may follow one that raised.

        Raises:
            RefusedError: the user or the password is wrong, the token asks for another user, or it is no
                SCRAM message.
            UnreadableTokenError: the proof has the wrong length.
        """
        message = token.decode("utf-8", "replace")
        if self._entry is None:
            return self._respond_to_first(message)
        return self._respond_to_final(message, self._entry)

    def _respond_to_first(self, message: str) -> bytes:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise RefusedError("Invalid SCRAM client first message format")
        user = self.user = unescaped(match["name"])
        entry = self._find(user, _is_token(match["extensions"]))
        if entry is None:
            raise RefusedError("Invalid user credentials")
        if match["authorization_id"] not in (None, user):
            raise other_authorization_id()
        credential = entry.credential
        if credential.iterations < MIN_ITERATIONS:
            raise RefusedError(
                f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS} "
                f"for {self._mechanism.name}"
            )
        self._entry = entry
        self._nonce = match["nonce"] + self._server_nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._said = f"{match['bare']},{answer}"
        return answer.encode()

    def _respond_to_final(self, message: str, entry: ScramEntry) -> bytes:
        credential = entry.credential
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise RefusedError("Invalid SCRAM client final message format")
        if match["nonce"] != self._nonce:
            raise RefusedError("Invalid client nonce in the final client message.")
        mechanism = self._mechanism
        channel = base64.b64encode(base64.b64decode(match["channel"])).decode()
        signed = f"{self._said},c={channel},r={self._nonce}".encode()
        proof = base64.b64decode(match["proof"])
        if len(proof) != mechanism.key_bytes:
            raise UnreadableTokenError("The proof of a SCRAM client has the wrong length")
        client_key = exclusive_or(signature(mechanism, credential.stored_key, signed), proof)
        stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
        fits = hmac.compare_digest(stored_key, credential.stored_key)
        server_signature = signature(mechanism, credential.server_key, signed)
        if not fits:
            raise RefusedError("Invalid client credentials")
        self.account = entry.account
        return b"v=" + base64.b64encode(server_signature)


def _is_token(extensions: str) -> bool:
    """`extensions` is empty or begins with a comma; of a repeated name the last value counts."""
    values = dict(part.split("=", 1) for part in extensions.split(",")[1:])
    return values.get("tokenauth", "").lower() == "true"
