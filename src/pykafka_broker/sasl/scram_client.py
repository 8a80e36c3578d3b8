"""SCRAM as a client runs it. Source: RFC 5802."""

from __future__ import annotations

import base64
import binascii
import hmac
import re

from pykafka_broker.sasl.refusal import RefusedError
from pykafka_broker.sasl.scram_keys import (
    MIN_ITERATIONS,
    ScramMechanism,
    client_key,
    credential_of,
    escaped,
    exclusive_or,
    salted_password,
    signature,
)

#: The limit keeps a false server from making the client compute for minutes.
MOST_ITERATIONS = 1_000_000

_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?", re.DOTALL
)
#: "n,," in base64: no channel binding.
_CHANNEL = "biws"


class ScramClient:
    """One exchange with a server: `first`, `final`, `verify`, in this order.

    `nonce` is random text, new for each exchange. With `by_token` the user is the id of a delegation token,
    and the password is its HMAC.
    """

    def __init__(
        self, mechanism: ScramMechanism, user: str, password: str, nonce: str, by_token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={escaped(user)},r={nonce}" + (",tokenauth=true" if by_token else "")
        self._server_signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that the client knows the password.

        Raises:
            RefusedError: the message is malformed, has another nonce, or too few or too many iterations.
        """
        text = server_first.decode("utf-8", "replace")
        match = _SERVER_FIRST.fullmatch(text)
        if match is None:
            raise RefusedError("Invalid SCRAM server first message format")
        if not match["nonce"].startswith(self._nonce):
            raise RefusedError("Invalid server nonce: does not start with client nonce")
        iterations = int(match["iterations"])
        if not MIN_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise RefusedError(
                f"The server asks for {iterations} iterations of {self._mechanism.name}; "
                f"from {MIN_ITERATIONS} to {MOST_ITERATIONS} are accepted"
            )
        try:
            salt = base64.b64decode(match["salt"], validate=True)
        except binascii.Error:
            raise RefusedError("Invalid SCRAM server first message format") from None
        mechanism = self._mechanism
        salted = salted_password(mechanism, self._password, salt, iterations)
        credential = credential_of(mechanism, salted, salt, iterations)
        without_proof = f"c={_CHANNEL},r={match['nonce']}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        proof = exclusive_or(
            client_key(mechanism, salted), signature(mechanism, credential.stored_key, signed)
        )
        self._server_signature = signature(mechanism, credential.server_key, signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the credential too.

        Raises:
            RefusedError: the server does not.
        """
        expected = b"v=" + base64.b64encode(self._server_signature)
        if not self._server_signature or not hmac.compare_digest(server_final.split(b",", 1)[0], expected):
            raise RefusedError("Invalid server signature in server final message")
