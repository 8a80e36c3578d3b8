"""Why things are as they are, of a broker that tells its history to those on its machine."""

from __future__ import annotations

import re

import pytest

from pykafka_broker.cli.explain import history
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import CLIENT
from tests.cli.test_explain import join_and_leave
from tests.console.browser import Browser
from tests.console.test_groups import committed
from tests.console.test_messages import SCRIPT
from tests.console.test_topics import create


def test_the_page_of_a_group_says_who_left_it_and_when(reader: Browser, client: Client, broker: str) -> None:
    """The name of a member begins with its client id, which may be anything."""
    create(client, "left")
    committed(client, "leavers", "left", 0)
    with Client(broker, 30.0, identity=CLIENT._replace(client_id=SCRIPT)) as leaver:
        join_and_leave(leaver, "leavers")

    page = reader.page("/groups/of", group="leavers")

    assert "The group is Empty: no member is in it." in page.source
    decisions = page.rows("History of group leavers, the newest first")
    [(when, decision)] = [(row[0], row[-2]) for row in decisions if " left: done." in row[-2]]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", when)
    assert decision.startswith(f"Member {SCRIPT}-")
    assert page.tags.count("script") == 1, "the console's own"
    explained = reader.page("/explain", kind="group", name="leavers")
    assert explained.rows("History of group leavers, the newest first") == decisions
    assert "Its coordinator is broker 1, and it has 0 members, 0 records behind." in explained.source


def test_a_page_waits_for_histories_for_some_seconds_only(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, "slow")
    monkeypatch.setattr(history, "WITHIN_S", 0.0)

    page = reader.page("/explain", kind="partition", name="slow-0")

    assert "History not available: broker 1 is not asked" in page.source
    assert "The partition has broker 1 as its leader" in page.source


def test_a_partition_is_explained_from_its_row(reader: Browser, client: Client) -> None:
    create(client, "led")

    page = reader.page(reader.page("/topics/led").links["led-0"])

    assert page.title == "Explain"
    assert page.forms["get", "/explain"] == {"kind": "partition", "name": "led-0"}
    assert "The partition has broker 1 as its leader" in page.source


def test_the_page_asks_first_what_to_explain(reader: Browser) -> None:
    page = reader.page(reader.page("/").links["Explain"])

    assert page.forms["get", "/explain"] == {"kind": "group", "name": ""}


@pytest.mark.parametrize(
    ("kind", "name", "status", "told"),
    [
        ("cluster", "any", 400, "cluster"),
        ("partition", "orders", 400, "orders is no partition: name it as orders-0"),
        ("group", "unknown", 404, "Group unknown not found."),
    ],
)
def test_what_cannot_be_explained_is_told(
    reader: Browser, kind: str, name: str, status: int, told: str
) -> None:
    answer = reader.get("/explain", kind=kind, name=name)

    assert answer.status == status
    assert told in answer.page.source
