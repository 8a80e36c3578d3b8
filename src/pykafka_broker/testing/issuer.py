"""An issuer of bearer tokens: it gives a token for a user and password, and publishes the key that signs
tokens (RFC 6749, 4.4; RFC 7517).
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwk, jwt

AUDIENCE = "kafka"
LIFETIME_S = 3_600


class Issuer:
    """Serves on the loopback interface until it is closed. `users` maps names to passwords."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = dict(users)
        self._key = jwk.RSAKey.generate_key(2048, {"kid": "interop", "use": "sig", "alg": "RS256"})
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, {"keys": [issuer._key.as_dict(private=False)]})

            def do_POST(self) -> None:
                asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                token = issuer.token(self.credentials(asked))
                if token is None:
                    self.answer(401, {"error": "invalid_client"})
                else:
                    told = {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_S}
                    self.answer(200, told)

            def credentials(self, asked: Mapping[str, list[str]]) -> tuple[str, str]:
                """The credentials in the header, as most clients send them, or in the body."""
                kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
                if kind.lower() == "basic":
                    user, _, password = base64.b64decode(encoded).decode().partition(":")
                    return user, password
                return asked.get("client_id", [""])[0], asked.get("client_secret", [""])[0]

            def answer(self, status: int, told: Any) -> None:
                body = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def token_endpoint(self) -> str:
        return f"{self.url}/token"

    @property
    def key_set(self) -> str:
        return f"{self.url}/keys"

    def token(self, credentials: tuple[str, str]) -> str | None:
        """A token; None where user and password do not belong together."""
        user, password = credentials
        if self._users.get(user) != password:
            return None
        now = int(time.time())
        claims = {"sub": user, "iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + LIFETIME_S}
        return str(jwt.encode({"alg": "RS256", "kid": self._key.kid}, claims, self._key))

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def issuing(users: Mapping[str, str]) -> Iterator[Issuer]:
    issuer = Issuer(users)
    try:
        yield issuer
    finally:
        issuer.close()
