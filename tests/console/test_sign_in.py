"""Signing in as a user of the cluster, who may do what its ACLs allow; sessions end."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cli.explain.history import OwnHistory
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.console.sessions import IDLE_MS, MAX_SESSIONS, Sessions, User
from pykafka_broker.console.settings import Settings
from pykafka_broker.machine.history import Kind
from pykafka_broker.testing.clock import VirtualClock
from tests.console.browser import Browser


def signed_in(browser: Browser, user: str, password: str) -> None:
    page = browser.page("/")
    assert page.title == "Sign in"
    answer = browser.send(page, "/sign-in", user=user, password=password, mechanism="PLAIN")
    assert answer.status == 200, answer.page.source


def test_a_visitor_may_do_what_the_acls_of_the_user_allow(secured: Settings) -> None:
    with Browser(secured) as bob, Browser(secured) as alice:
        signed_in(bob, "bob", "bob-secret")
        signed_in(alice, "alice", "alice-secret")

        made = bob.send(bob.page("/topics"), "/topics", name="of-bob")
        refused = alice.send(alice.page("/topics"), "/topics", name="of-alice")

        assert made.path == "/topics/of-bob"
        assert refused.status == 403
        assert [row[0] for row in bob.page("/topics").rows("Topics")] == ["of-bob"]
        assert "Topics" not in alice.page("/topics").tables, "alice may not see a topic"


def test_a_history_is_for_those_who_may_describe_the_configs_of_brokers(secured: Settings) -> None:
    with Browser(secured) as bob, Browser(secured) as alice:
        signed_in(bob, "bob", "bob-secret")
        signed_in(alice, "alice", "alice-secret")
        alice.send(alice.page("/topics"), "/topics", name="refused")

        asked = {"kind": "request", "name": "User:alice"}
        of_bob, of_alice = (who.page("/explain", **asked) for who in (bob, alice))

        caption = "History of request User:alice, the newest first"
        decisions = [row[-2] for row in of_bob.rows(caption)]
        assert any("refused" in text and "denied" in text for text in decisions), decisions
        assert caption not in of_alice.tables
        assert "History not available: broker 1 does not tell its metrics.listeners: " in of_alice.source


def test_the_history_in_the_process_is_for_the_same_users(secured: Settings) -> None:
    asked: list[str] = []

    def tell(_kind: Kind, name: str) -> dict[str, Any]:
        asked.append(name)
        return {"now": [{"text": "It is here.", "remedy": ""}], "history": []}

    own = secured._replace(history=OwnHistory(1, tell))
    with Browser(own) as bob, Browser(own) as alice:
        signed_in(bob, "bob", "bob-secret")
        signed_in(alice, "alice", "alice-secret")
        of_bob = bob.page("/explain", kind="request", name="by-bob")
        of_alice = alice.page("/explain", kind="request", name="by-alice")

    assert asked == ["by-bob"]
    assert "It is here." in of_bob.source
    assert "History not available: broker 1 does not tell its metrics.listeners: " in of_alice.source


def test_a_broker_that_is_too_busy_for_its_history_is_not_waited_for(secured: Settings) -> None:
    def tell(_kind: Kind, _name: str) -> dict[str, Any]:
        raise TimeoutError

    with Browser(secured._replace(history=OwnHistory(1, tell))) as bob:
        signed_in(bob, "bob", "bob-secret")
        told = bob.page("/explain", kind="request", name="by-bob")
    assert "History not available: broker 1 has not told its history within 3 s." in told.source


def test_nothing_is_shown_before_the_sign_in_and_after_the_sign_out(secured: Settings) -> None:
    with Browser(secured) as browser:
        for path in ("/", "/topics", "/groups", "/events"):
            assert browser.get(path).path == "/sign-in"
        signed_in(browser, "bob", "bob-secret")
        before = browser.http.cookies["console-9080"]
        out = browser.send(browser.page("/"), "/sign-out")
        assert out.path == "/sign-in"
        browser.http.cookies.set("console-9080", before, domain="127.0.0.1")
        assert browser.get("/").path == "/sign-in", "the session has ended on this side"


def test_a_wrong_password_is_refused_as_the_broker_refuses_it(secured: Settings) -> None:
    with Browser(secured) as browser:
        answer = browser.send(browser.page("/"), "/sign-in", user="bob", password="wrong", mechanism="PLAIN")
        assert answer.status == 401
        assert "Invalid username or password" in answer.page.source
        assert "wrong" not in answer.page.source
        assert browser.get("/topics").path == "/sign-in"


def test_sign_ins_and_changes_are_logged(secured: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """A refusal that is repeated at once has no line of its own: a log that strangers can fill is no help."""
    logger = "pykafka_broker.console"
    with caplog.at_level("INFO", logger), Browser(secured, VirtualClock()) as browser:
        page = browser.page("/")
        for _ in range(2):
            browser.send(page, "/sign-in", user="bo\nb", password="wrong", mechanism="PLAIN")
        signed_in(browser, "bob", "bob-secret")
        topics = browser.page("/topics")
        browser.send(topics, "/topics", name="logged", configs="retention.ms=1\ncleanup.policy=delete")
        browser.send(topics, "/topics", name="logged")
        records, topic = browser.page("/topics/logged/messages"), browser.page("/topics/logged")
        browser.send(records, "/topics/logged/produce", key="k", value="confidential")
        browser.send(topic, "/topics/logged/delete", name="other")

    lines = [record.getMessage() for record in caplog.records if record.name == logger]
    refused, *others = lines
    assert refused.startswith("User bo\\nb at testclient is refused: POST /sign-in (")
    assert others == [
        "User bob at testclient has signed in: POST /sign-in",
        "User bob at testclient has made a change: POST /topics "
        r"(name='logged', configs='retention.ms=1\ncleanup.policy=delete')",
        "User bob at testclient is refused: POST /topics (name='logged'): Topic 'logged' already exists.",
        "User bob at testclient has made a change: POST /topics/logged/produce",
        "User bob at testclient is refused: POST /topics/logged/delete: "
        "Nothing is changed: the name that was typed is not logged.",
    ]
    assert "wrong" not in caplog.text


def test_a_cookie_from_before_the_sign_in_is_worth_nothing_after_it(secured: Settings) -> None:
    """Whoever has planted it would be signed in, too (session fixation)."""
    with Browser(secured) as browser, Browser(secured) as planter:
        planter.page("/")
        planted = planter.http.cookies["console-9080"]
        browser.http.cookies.set("console-9080", planted, domain="127.0.0.1")
        signed_in(browser, "bob", "bob-secret")

        assert browser.get("/topics").path == "/topics"
        assert planter.get("/topics").path == "/sign-in"


def test_a_session_ends_when_it_is_not_used(secured: Settings) -> None:
    clock = VirtualClock()
    with Browser(secured, clock) as browser:
        signed_in(browser, "bob", "bob-secret")
        clock.advance(IDLE_MS - 1)
        assert browser.get("/topics").path == "/topics"
        clock.advance(IDLE_MS - 1)
        assert browser.get("/topics").path == "/topics"
        clock.advance(IDLE_MS + 1)
        assert browser.get("/topics").path == "/sign-in"


def test_the_session_that_was_used_longest_ago_gives_way() -> None:
    sessions = Sessions(VirtualClock())
    user = User("bob", ClientSecurity())
    for number in range(MAX_SESSIONS):
        sessions.begin(str(number), user)
    assert sessions.user("0") == user
    assert sessions.user("1", is_use=False) == user

    sessions.begin("new", user)

    assert [sessions.user(name) for name in ("0", "1", "2", "new")] == [user, None, user, user]
    assert "secret" not in repr(user)
