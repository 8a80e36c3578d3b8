"""What stands between a browser and the pages: names of hosts, where a request is from, headers, the cookie,
the token of forms.

A page of another site, such as another server on this machine, could have a browser ask for what costs much
(<img src=…>), without reading it. A browser says so in Sec-Fetch-Site, and such requests are refused; a link
or a typed address still leads to a page. Browsers send that header to localhost and over HTTPS alone.

The cookie holds a random id and a signature of it, so that only ids count which this process has given. A
form carries a token made of the id, which a page elsewhere can neither read nor guess (CSRF); the cookie is
SameSite=Strict besides. Both are worth nothing to another process: the key is made at the start.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The most bytes and fields of a form.
MAX_FORM_BYTES, MAX_FORM_FIELDS = 1024 * 1024, 100
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware: answers requests for known hosts alone, and none of other sites' pages, with headers
    that keep browsers careful.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        answer = self._app
        if len(hosts) != 1 or host_name(hosts[0]) not in self._allowed_hosts:
            answer = PlainTextResponse("This console is not served under that name.\n", status_code=421)
        elif is_of_other_site(headers):
            answer = PlainTextResponse("This console does not serve pages of other sites.\n", status_code=403)
        await answer(scope, receive, send_guarded)


def is_of_other_site(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site has the browser ask for something else than a page to show by itself."""
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def host_name(host: str) -> str:
    """The name in a header Host, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class Cookies:
    """The ids that this process has given to browsers, and the tokens of their forms."""

    def __init__(self, port: int) -> None:
        #: Browsers send a cookie to all ports of a host: two consoles on one must not share one.
        self.name = f"console-{port}"
        self._key = secrets.token_bytes(32)

    def new_id(self) -> str:
        return secrets.token_urlsafe(24)

    def session_id(self, request: HTTPConnection) -> str | None:
        """The id in the cookie of a request; None if this process has not given it."""
        session_id, _, signature = request.cookies.get(self.name, "").partition(".")
        signed = self._sign(f"id {session_id}")
        return session_id if hmac.compare_digest(signed.encode(), signature.encode()) else None

    def header(self, session_id: str, scheme: str) -> str:
        """The value of Set-Cookie."""
        secure = "; Secure" if scheme == "https" else ""
        value = f"{session_id}.{self._sign(f'id {session_id}')}"
        return f"{self.name}={value}; HttpOnly; SameSite=Strict; Path=/{secure}"

    def token(self, session_id: str) -> str:
        """What the forms of a browser with this id have to carry."""
        return self._sign(f"form {session_id}")

    def is_own_form(self, session_id: str | None, token: str) -> bool:
        """Whether a form is from a page that was made for this id."""
        return session_id is not None and hmac.compare_digest(self.token(session_id).encode(), token.encode())

    def _sign(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), "sha256").hex()


class FormError(Exception):
    """A form that is too large, or none."""


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, as browsers send it by default.

    Raises:
        FormError: it is too large, or not of that type.
    """
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise FormError("This is no form.")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_FORM_BYTES:
            raise FormError(f"A form may have {MAX_FORM_BYTES} bytes.")
    try:
        pairs = parse_qsl(
            data.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise FormError("The form cannot be read.") from None
    return dict(pairs)
