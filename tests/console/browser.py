"""A visitor without a screen: keeps the cookie, reads pages, sends the forms that are in them."""

from __future__ import annotations

from html.parser import HTMLParser
from types import TracebackType
from typing import Any, NamedTuple, Self

from starlette.testclient import TestClient

from pykafka_broker.console.app import console
from pykafka_broker.console.settings import Settings
from pykafka_broker.machine.clock import Clock

BASE = "http://127.0.0.1:9080"


class Html(HTMLParser):
    """What a page says: its texts, links, tables and forms."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.title = ""
        self.links: dict[str, str] = {}
        #: Caption -> rows of texts, the titles first.
        self.tables: dict[str, list[list[str]]] = {}
        #: Method and action -> fields with their values.
        self.forms: dict[tuple[str, str], dict[str, str]] = {}
        #: Method and action -> the fields that a browser wants filled in.
        self.required: dict[tuple[str, str], list[str]] = {}
        self.alerts: list[str] = []
        self.tags: list[str] = []
        self._rows: list[list[str]] = []
        self._form: dict[str, str] = {}
        self._required: list[str] = []
        self._select = ""
        self._href = ""
        self._collected: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if tag in ("td", "th", "h1", "caption", "a") or given.get("role") == "alert":
            self._collected = []
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag == "a":
            self._href = given.get("href", "")
        elif tag == "form":
            self._form = self.forms[given["method"], given["action"]] = {}
            self._required = self.required[given["method"], given["action"]] = []
        elif tag == "input":
            if "required" in given:
                self._required.append(given["name"])
            self._form[given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self._form[given["name"]] = ""
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and ("selected" in given or self._select not in self._form):
            self._form[self._select] = given["value"]

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._collected).strip()
        if tag == "caption":
            self.tables[text] = self._rows
        elif tag in ("td", "th"):
            self._rows[-1].append(text)
        elif tag == "a":
            self.links[text] = self._href
        elif tag == "h1":
            self.title = text
        elif tag == "p":
            self.alerts.append(text)

    def handle_data(self, data: str) -> None:
        self._collected.append(data)

    def rows(self, caption: str) -> list[list[str]]:
        """The rows of a table without its titles."""
        return self.tables[caption][1:]


class Answer(NamedTuple):
    """An answer to a request, after redirects."""

    status: int
    page: Html
    headers: Any
    path: str
    content: bytes


class Browser:
    """Requests to a console, as one browser sends them."""

    def __init__(self, settings: Settings, clock: Clock | None = None, base: str = BASE) -> None:
        self.http = TestClient(console(settings, clock), base_url=base, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def get(self, path: str, /, **query: str) -> Answer:
        return self._answer(self.http.get(path, params=query or None))

    def page(self, path: str, /, **query: str) -> Html:
        """A page that is there."""
        answer = self.get(path, **query)
        assert answer.status == 200, answer.page.source
        return answer.page

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        return self._answer(self.http.post(path, data=fields))

    def send(self, page: Html, action: str, /, **fields: str) -> Answer:
        """Fill in a form of a page, and send it."""
        form = page.forms["post", action]
        assert fields.keys() <= form.keys(), form
        return self.post(action, form | fields)

    @staticmethod
    def _answer(response: Any) -> Answer:
        text = response.text if "html" in response.headers.get("content-type", "") else ""
        return Answer(response.status_code, Html(text), response.headers, response.url.path, response.content)
