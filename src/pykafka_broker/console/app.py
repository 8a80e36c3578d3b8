"""From a request to a page: routes, sign-in, errors.

Pages and changes are functions of a `Visit` that block; they run in threads, each with a client of its own.
A change is a form that carries the token of its page; it ends with a redirect to the page that shows it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from pykafka_broker.cli import expected
from pykafka_broker.cli.output import Failure
from pykafka_broker.client.core.authentication import STRONGEST_FIRST
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.client.security import login_of
from pykafka_broker.console.guard import Cookies, FormError, Guard, form_of
from pykafka_broker.console.page import Field, Form, Page, Section, Text
from pykafka_broker.console.routes import (
    ACTIONS,
    DOWNLOADS,
    EVENTS,
    NAVIGATION,
    PAGES,
    Action,
    Download,
    Follow,
    Show,
)
from pykafka_broker.console.sessions import Sessions, User
from pykafka_broker.console.settings import Settings
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines
from pykafka_broker.system.wording import cut, printable

logger = logging.getLogger("pykafka_broker.console")
FOLDER = Path(__file__).parent
Answered = TypeVar("Answered")
Endpoint = Callable[[Request], Awaitable[Response]]

#: The most streams of events at once, the turns after which a stream ends and its browser opens another (one
#: whose reader is gone does not stay), and the time between turns, each of which brings numbers.
MAX_STREAMS, STREAM_TURNS, STREAM_INTERVAL_S = 20, 300, 2.0

#: What a page says after a change.
DONE = {
    "created": "It is created.",
    "changed": "It is changed.",
    "deleted": "It is deleted.",
    "written": "The record is written.",
    "aborted": "It is aborted.",
}
#: The statuses of errors that are not the visitor's.
STATUSES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: 403,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
}
REFUSED_LOGINS = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_SASL_MECHANISM})


class SignInError(Exception):
    """The cluster asks for a user, and the visitor has not signed in."""


class Events(StreamingResponse):
    """A stream of events; `ended` is called at its end, also of one whose visitor leaves before it begins."""

    def __init__(self, events: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def console(settings: Settings, clock: Clock | None = None) -> ASGIApp:
    """The console as an ASGI application; it may be called by the names of `settings.allowed_hosts` alone."""
    served = _Console(settings, clock or SystemClock())
    routes = [
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
        Route("/sign-in", served.guarded(served.sign_in)),
        Route("/sign-in", served.guarded(served.signed_in), methods=["POST"]),
        Route("/sign-out", served.guarded(served.signed_out), methods=["POST"]),
        *(Route(path, served.guarded(served.page(show))) for path, show in PAGES),
        *(Route(action.path, served.guarded(served.action(action)), methods=["POST"]) for action in ACTIONS),
        *(Route(path, served.guarded(served.download(download))) for path, download in DOWNLOADS),
        *(Route(path, served.guarded(served.events(follow))) for path, follow in EVENTS),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: served.not_served})
    return Guard(app, settings.allowed_hosts)


class _Console:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._sessions = Sessions(clock)
        self._cookies = Cookies(settings.port)
        #: Whether the cluster asks for a user; None before a broker has told.
        self._asks: bool | None = None
        self._streams = 0
        self._refusals = RepeatedLines(logger, clock.monotonic_ms)
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["kind"] = lambda part: type(part).__name__.lower()

    # -- pages and changes -------------------------------------------------------------------------------

    def page(self, show: Show) -> Endpoint:
        async def serve(request: Request) -> Response:
            page = await self._visit(request, show)
            return self._rendered(request, page)

        return serve

    def download(self, download: Download) -> Endpoint:
        async def serve(request: Request) -> Response:
            return await self._visit(request, download)

        return serve

    def action(self, action: Action) -> Endpoint:
        async def serve(request: Request) -> Response:
            form = await self._own_form(request)
            if not self._settings.write:
                raise HTTPException(403, "This console shows only: it was started without console.write.")
            _check_filled_in(form, action.required)
            user = self._user(request)
            who = "A visitor" if user is None else f"User {_shown(user.name)}"
            who = f"{who} at {_address(request)}"
            told = (*action.required, *action.optional)
            fields = ", ".join(f"{name}={cut(form[name])!r}" for name in told if form.get(name))
            what = f"POST {printable(request.url.path)}{fields and f' ({fields})'}"

            def act(visit: Visit) -> str:
                try:
                    shown_at = action.act(visit)
                except Exception as error:
                    reason = getattr(_failure(error), "error", type(error).__name__)
                    # What was sent and not answered may be done.
                    outcome = "got no answer" if isinstance(error, OSError) else "is refused"
                    logger.info("%s %s: %s: %s", who, outcome, what, _shown(reason))
                    raise
                logger.info("%s has made a change: %s", who, what)
                return shown_at

            return RedirectResponse(await self._visit(request, act, form), 303)

        return serve

    async def _visit(
        self, request: Request, answer: Callable[[Visit], Answered], form: Mapping[str, str] | None = None
    ) -> Answered:
        security = await self._security(request)

        def answered() -> Answered:
            with self._settings.connect(security) as client:
                return answer(
                    Visit(self._settings, client, request.path_params, dict(request.query_params), form or {})
                )

        return await run_in_threadpool(answered)

    # -- events ------------------------------------------------------------------------------------------

    def events(self, follow: Follow) -> Endpoint:
        async def serve(request: Request) -> Response:
            security = await self._security(request)
            if self._streams >= MAX_STREAMS:
                raise HTTPException(503, f"{MAX_STREAMS} pages follow the cluster already.")
            self._streams += 1
            return Events(self._stream(request, security, follow), self._stream_ended)

        return serve

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _stream(
        self, request: Request, security: ClientSecurity | None, follow: Follow
    ) -> AsyncIterator[str]:
        with self._settings.connect(security) as client:
            visit = Visit(self._settings, client, request.path_params, dict(request.query_params), {})
            news: Callable[[], object] | None = None
            for _ in range(STREAM_TURNS):
                try:
                    if news is None:
                        news = await run_in_threadpool(follow, visit)
                    told = await run_in_threadpool(news)
                except Exception as error:
                    failure = _failure(error)
                    if failure is None:
                        raise
                    told = {"error": failure.error}
                yield f"data: {json.dumps(told)}\n\n"
                await asyncio.sleep(STREAM_INTERVAL_S)
                if self._asks and self._user(request, is_use=False) is None:
                    return

    # -- who it is ---------------------------------------------------------------------------------------

    def _user(self, request: Request, *, is_use: bool = True) -> User | None:
        session_id = self._cookies.session_id(request)
        return None if session_id is None else self._sessions.user(session_id, is_use=is_use)

    async def _security(self, request: Request) -> ClientSecurity | None:
        """The security of connections for this request.

        Raises:
            SignInError: the cluster asks for a user.
        """
        if self._asks is None:
            self._asks = await run_in_threadpool(self._settings.asks_for_user)
        if not self._asks:
            return self._settings.security
        user = self._user(request)
        if user is None:
            raise SignInError
        return user.security

    async def sign_in(self, request: Request) -> Response:
        return self._rendered(request, _sign_in_page())

    async def signed_in(self, request: Request) -> Response:
        form = await self._own_form(request)
        # A password may be spaces; an empty one is refused by the broker.
        _check_filled_in(form, ("user",))
        tls = None if self._settings.security is None else self._settings.security.tls
        mechanism = form.get("mechanism", "")
        login = login_of(
            form.get("user", ""),
            form.get("password", ""),
            mechanism if mechanism in STRONGEST_FIRST else None,
        )
        user = User(form.get("user", ""), ClientSecurity(login, tls))
        name, address, path = _shown(user.name), _address(request), request.url.path

        def try_it() -> None:
            with self._settings.connect(user.security) as client:
                client.metadata([])

        try:
            await run_in_threadpool(try_it)
        except KafkaError as error:
            if error.code not in REFUSED_LOGINS:
                raise
            reason = error.message or error.code.name
            line = f"User {name} at {address} is refused: POST {path} ({printable(reason)})"
            self._refusals.log(logging.WARNING, "sign-in", f"{address} {name}", line)
            return self._rendered(request, _sign_in_page(reason), 401)
        logger.info("User %s at %s has signed in: POST %s", name, address, path)
        session_id = self._cookies.new_id()
        self._sessions.begin(session_id, user)
        return self._with_cookie(RedirectResponse("/", 303), session_id, request)

    async def signed_out(self, request: Request) -> Response:
        await self._own_form(request)
        self._sessions.end(self._cookies.session_id(request) or "")
        return self._with_cookie(RedirectResponse("/sign-in", 303), self._cookies.new_id(), request)

    async def _own_form(self, request: Request) -> dict[str, str]:
        """The fields of a form that a page of this console has made.

        Raises:
            HTTPException: it is another form.
        """
        try:
            form = await form_of(request)
        except FormError as error:
            raise HTTPException(400, str(error)) from None
        if not self._cookies.is_own_form(self._cookies.session_id(request), form.pop("token", "")):
            raise HTTPException(
                403, "The form is not from a page of this console as it runs now: load its page again."
            )
        return form

    # -- answers -----------------------------------------------------------------------------------------

    def guarded(self, serve: Endpoint) -> Endpoint:
        """The endpoint, with a page in the place of each error that is not a bug."""

        async def answer(request: Request) -> Response:
            try:
                return await serve(request)
            except SignInError:
                return RedirectResponse("/sign-in", 303)
            except HTTPException as error:
                return self._failed(request, error.status_code, error.detail)
            except Exception as error:
                failure = _failure(error)
                if failure is None:
                    raise
                if isinstance(error, KafkaError):
                    if error.code in REFUSED_LOGINS:
                        self._sessions.end(self._cookies.session_id(request) or "")
                        return RedirectResponse("/sign-in", 303)
                    return self._failed(request, STATUSES.get(error.code, 400), failure.error)
                return self._failed(request, 502 if isinstance(error, OSError) else 400, failure.error)

        return answer

    async def not_served(self, request: Request, error: Exception) -> Response:
        """The answer to a request that no route takes."""
        assert isinstance(error, HTTPException)
        return self._failed(request, error.status_code, error.detail)

    def _failed(self, request: Request, status: int, reason: str) -> Response:
        return self._rendered(
            request, Page("This did not work", (Section("Why", (Text(reason, "warning"),)),)), status
        )

    def _rendered(self, request: Request, page: Page, status: int = 200) -> Response:
        known = self._cookies.session_id(request)
        session_id = known or self._cookies.new_id()
        user = self._user(request, is_use=False)
        text = self._templates.get_template("page.html").render(
            page=page,
            navigation=NAVIGATION,
            here=request.url.path,
            done=DONE.get(request.query_params.get("done", "")),
            user=None if user is None else user.name,
            can_write=self._settings.write,
            token=self._cookies.token(session_id),
        )
        response = Response(text.encode(errors="replace"), status, media_type="text/html; charset=utf-8")
        return response if known else self._with_cookie(response, session_id, request)

    def _with_cookie(self, response: Response, session_id: str, request: Request) -> Response:
        response.headers["Set-Cookie"] = self._cookies.header(session_id, request.url.scheme)
        return response


def _check_filled_in(form: Mapping[str, str], required: Sequence[str]) -> None:
    """Go on if no required field of a form is empty, which a browser checks, and nothing else.

    Raises:
        HTTPException: one is.
    """
    for name in required:
        if not form.get(name, "").strip():
            raise HTTPException(400, f"Nothing is done: the field {name.replace('_', ' ')} is empty.")


def _failure(error: Exception) -> Failure | None:
    """The failure to show for an error that is not a bug; a wrong value has the name of its field."""
    if isinstance(error, click.BadParameter) and isinstance(error.param_hint, str):
        error.param_hint = error.param_hint.removeprefix("--").capitalize()
    return expected(error)


def _shown(name: str) -> str:
    """The name of a user for the log, where any text may be typed."""
    return cut(printable(name))


def _address(request: Request) -> str:
    """Where a request is from: a browser, or a proxy before the console."""
    return "an unknown address" if request.client is None else request.client.host


def _sign_in_page(refusal: str | None = None) -> Page:
    mechanisms = [("", "the strongest that the broker offers"), *((name, name) for name in STRONGEST_FIRST)]
    form = Form(
        "/sign-in",
        "Sign in",
        (
            Field("user", "User", is_required=True, autocomplete="username"),
            Field("password", "Password", "", "password", is_required=True, autocomplete="current-password"),
            Field("mechanism", "Mechanism", kind="select", options=mechanisms),
        ),
    )
    refused = () if refusal is None else (Text(refusal, "warning"),)
    return Page("Sign in", (Section("A user of the cluster", (*refused, form)),))
