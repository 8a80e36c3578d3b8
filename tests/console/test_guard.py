"""What a page elsewhere, a record or a stranger cannot do: hosts, headers, forms, cookies, writing."""

from __future__ import annotations

import re

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_until_done
from pykafka_broker.console.guard import MAX_FORM_BYTES, host_name
from pykafka_broker.console.routes import ACTIONS
from pykafka_broker.console.settings import Settings
from tests.console.browser import Browser
from tests.console.test_topics import create


@pytest.mark.parametrize(
    ("header", "name"),
    [("localhost:9080", "localhost"), ("LOCALHOST", "localhost"), ("[::1]:9080", "::1"), ("[::1]", "::1")],
)
def test_the_name_in_a_header_is_found(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:9080", "", "10.0.0.7:9080"])
def test_a_page_under_another_name_is_not_served(reader: Browser, host: str) -> None:
    """A site can have its own name resolved to the loopback (DNS rebinding): its requests have that name."""
    answer = reader.http.get("/", headers={"host": host})

    assert answer.status_code == 421
    assert "Cluster" not in answer.text


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("same-site", "no-cors", "script", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_a_page_of_another_site_has_nothing_asked_for(
    reader: Browser, site: str, mode: str, dest: str, status: int
) -> None:
    """A link to a page leads there; the rest could cost much, unseen. Another port is the same site."""
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}

    assert reader.http.get("/sign-in", headers=headers).status_code == status


def test_names_that_the_console_was_told_are_served(broker: str) -> None:
    settings = Settings(broker, host="0.0.0.0", host_names=("Kafka.internal",))
    with Browser(settings, base="http://kafka.internal:9080") as named:
        assert named.get("/").status == 200
        assert named.http.get("/", headers={"host": "0.0.0.0:9080"}).status_code == 421


@pytest.mark.parametrize("path", ["/", "/topics", "/nothing", "/static/console.css", "/sign-in"])
def test_every_answer_keeps_browsers_careful(reader: Browser, path: str) -> None:
    headers = reader.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_pages_have_no_scripts_and_styles_of_their_own(writer: Browser, client: Client) -> None:
    create(client, "plain")
    for path in ("/", "/topics", "/topics/plain", "/topics/plain/messages", "/groups", "/access"):
        source = writer.page(path).source
        assert re.findall(r"<script(?! src=\"/static/console\.js\")", source) == []
        assert re.findall(r"<style|style=|\son[a-z]+=|javascript:|https?://", source) == []


def test_the_cookie_is_for_this_site_alone(broker: str) -> None:
    with Browser(Settings(broker)) as browser:
        cookie = browser.http.get("/").headers["set-cookie"]
        again = browser.http.get("/topics").headers
    with Browser(Settings(broker), base="https://127.0.0.1:9080") as secure:
        over_tls = secure.http.get("/").headers["set-cookie"]

    assert re.fullmatch(r"console-9080=[\w-]+\.[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=/", cookie)
    assert over_tls.endswith("; Secure")
    assert "set-cookie" not in again


@pytest.mark.parametrize("path", [action.path for action in ACTIONS] + ["/sign-in", "/sign-out"])
def test_a_form_that_no_page_has_made_does_nothing(writer: Browser, broker: str, path: str) -> None:
    token = writer.page("/sign-in").forms["post", "/sign-in"]["token"]
    with Browser(Settings(broker, write=True)) as another:
        another.page("/")
        wrong = ({"name": "x"}, {"token": "x"}, {"token": "ä"}, {"token": token})
        refused = [another.post(path, fields) for fields in wrong]
    without_cookie = writer.http.post(path, data={"token": token}, headers={"cookie": "console-9080=a.b"})

    assert [answer.status for answer in refused] == [403] * 4
    assert without_cookie.status_code == 403


@pytest.mark.parametrize("path", [action.path for action in ACTIONS])
def test_a_console_that_shows_only_changes_nothing(reader: Browser, path: str) -> None:
    token = reader.page("/sign-in").forms["post", "/sign-in"]["token"]

    answer = reader.post(path, {"token": token})

    assert answer.status == 403
    assert "shows only" in answer.page.source


def test_a_form_without_what_its_page_requires_does_nothing(writer: Browser, client: Client) -> None:
    """Browsers check it, and not every program that sends a form is one."""
    create(client, "filled")
    commit_until_done(client, "fillers", {("filled", 0): 0})
    pages = [
        *(writer.page(path) for path in ("/sign-in", "/topics", "/topics/filled", "/access")),
        *(writer.page(path, group="fillers", to="to_latest") for path in ("/groups/of", "/groups/reset")),
    ]
    told: dict[str, list[str]] = {}
    for page in pages:
        for (method, action), names in page.required.items():
            for name in names if method == "post" else ():
                refused = writer.send(page, action, **{name: " "})
                assert refused.status == 400, action
                told.setdefault(action, []).append(refused.page.alerts[-1])

    assert told["/topics/filled/configs"] == ["Nothing is done: the field key is empty."]
    assert told["/sign-in"][0] == "Nothing is done: the field user is empty."
    assert {"/topics", "/topics/filled/partitions", "/groups/delete", "/access/remove"} < told.keys()


def test_pages_that_show_only_offer_no_changes(reader: Browser, client: Client) -> None:
    create(client, "untouched")
    for path in ("/topics", "/topics/untouched", "/topics/untouched/messages", "/access"):
        assert [action for method, action in reader.page(path).forms if method == "post"] == []


def test_forms_have_limits(writer: Browser) -> None:
    token = writer.page("/sign-in").forms["post", "/sign-in"]["token"]

    large = writer.post("/topics", {"token": token, "name": "x" * MAX_FORM_BYTES})
    many = writer.post("/topics", {"token": token, **{f"field{number}": "1" for number in range(200)}})
    other = writer.http.post("/topics", content=b"{}", headers={"content-type": "application/json"})

    assert (large.status, many.status, other.status_code) == (400, 400, 400)


def test_a_cluster_that_does_not_answer_is_told() -> None:
    with Browser(Settings("127.0.0.1:1")) as browser:
        answer = browser.get("/")

    assert answer.status == 502
    assert "Cannot connect to 127.0.0.1:1" in answer.page.source
