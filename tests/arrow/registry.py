"""A registry of schemas that answers over HTTP, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ServedRegistry:
    """Schemas by the path at which they are asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.authorizations: set[str] = set()
        #: What is answered instead, if not 200.
        self.status = 200
        #: How many bytes of each answer are announced and do not come.
        self.missing_bytes = 0
        self._answers: dict[str, Any] = {}

    def add(
        self,
        subject: str,
        number: int,
        schema: Any,
        *,
        kind: str | None = None,
        references: Sequence[tuple[str, int]] = (),
    ) -> None:
        """The newest schema of a subject, its version as its id."""
        answer: dict[str, Any] = {"schema": schema if isinstance(schema, str) else json.dumps(schema)}
        if kind is not None:
            answer["schemaType"] = kind
        if references:
            answer["references"] = [
                {"name": each, "subject": each, "version": version} for each, version in references
            ]
        for path in (
            f"/schemas/ids/{number}",
            f"/subjects/{subject}/versions/{number}",
            f"/subjects/{subject}/versions/latest",
        ):
            self._answers[path] = answer if path.startswith("/schemas") else {"id": number, **answer}

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(path)
        if authorization is not None:
            self.authorizations.add(authorization)
        if self.status != 200:
            return self.status, b"{}"
        if path not in self._answers:
            return 404, b'{"error_code": 40403, "message": "Schema not found"}'
        return 200, json.dumps(self._answers[path]).encode()


@contextmanager
def served_registry() -> Iterator[ServedRegistry]:
    """A registry on a port of its own."""
    registry = ServedRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + registry.missing_bytes))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
