"""ACLs, users, quotas, the quorum, features and log directories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from pykafka_broker.cli.acls import Acl, described_acls
from pykafka_broker.client.blocking import Client
from pykafka_broker.console import app
from pykafka_broker.console import page as console_page
from pykafka_broker.console.live import LAG, THROUGHPUT
from pykafka_broker.console.settings import Settings
from tests.cli.conftest import run_command
from tests.console.browser import Browser
from tests.console.test_messages import written


def test_an_acl_is_added_shown_and_removed(writer: Browser, client: Client) -> None:
    fields = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "PREFIXED",
        "principal": "User:carol",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    acl = Acl(*fields.values())

    added = writer.send(writer.page("/access"), "/access/add", **fields)
    assert added.page.rows("ACLs") == [list(acl)]
    assert described_acls(client, None, None, "any") == [acl]

    wrong = writer.send(added.page, "/access/remove", **{**fields, "principal": "User:dave"})
    assert wrong.status == 400
    nonsense = writer.send(added.page, "/access/add", **{**fields, "operation": "FLY"})
    assert nonsense.status == 400
    removed = writer.send(added.page, "/access/remove", **fields)
    assert "ACLs" not in removed.page.tables
    assert described_acls(client, None, None, "any") == []


def test_users_and_quotas_are_shown_page_by_page(
    reader: Browser, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ("users", "set", "carol", "--password-file", "-"),
        ("quotas", "set", "--user", "carol", "consumer_byte_rate=1", "producer_byte_rate=2"),
    ):
        assert run_command(*words, "-b", broker, stdin=b"carol-secret\n").status == 0

    monkeypatch.setattr(console_page, "PAGE_ROWS", 1)
    page = reader.page("/access")
    second = reader.page(page.links["Next page"])

    assert page.rows("Users") == second.rows("Users") == [["carol", "SCRAM-SHA-512", "4096"]]
    assert page.rows("Quotas") == [["user-principal 'carol'", "consumer_byte_rate", "1"]]
    assert second.rows("Quotas") == [["user-principal 'carol'", "producer_byte_rate", "2"]]


def test_the_quorum_the_features_and_the_disks_are_shown(reader: Browser) -> None:
    quorum = reader.page("/quorum")
    assert [row[:2] for row in quorum.rows("Metadata log")] == [["1", "Leader"]]
    assert "metadata.version" in [row[0] for row in quorum.rows("Features")]
    [[broker, _, state, *_]] = reader.page("/disks").rows("Directories of 1")
    assert (broker, state) == ("1", "online")


def test_throughput_and_lag_come_as_events(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STREAM_TURNS", 2)
    monkeypatch.setattr(app, "STREAM_INTERVAL_S", 0)
    written(client, "charted", "0", "1", "2")

    page = reader.page("/")
    first, second = [
        json.loads(event.removeprefix("data: "))
        for event in reader.http.get("/events").text.split("\n\n")
        if event
    ]

    assert 'data-events="/events"' in page.source
    assert all(f'data-series="{series}"' in page.source for series in (LAG, THROUGHPUT))
    assert first == {LAG: 0}
    assert second == {LAG: 0, THROUGHPUT: 0.0}


def test_only_so_many_pages_follow_the_cluster(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all ask before one is answered; a stream whose visitor leaves at once counts no longer."""
    monkeypatch.setattr(app, "MAX_STREAMS", 2)
    served = app.console(Settings(broker))
    path, host = "/events", (b"host", b"127.0.0.1")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [host]}

    async def statuses() -> list[int]:
        told: list[int] = []
        all_are_answered = asyncio.Event()

        async def receive() -> dict[str, str]:
            await all_are_answered.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                told.append(message["status"])
                if len(told) == 3:
                    all_are_answered.set()
                await all_are_answered.wait()

        await asyncio.gather(*(served(dict(scope), receive, send) for _ in range(3)))
        await served(dict(scope), receive, send)
        return told

    *burst, later = asyncio.run(statuses())
    assert (sorted(burst), later) == ([200, 200, 503], 200)
