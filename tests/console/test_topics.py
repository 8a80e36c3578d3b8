"""The pages of the cluster and of topics."""

from __future__ import annotations

import pytest

from pykafka_broker.cli.topics import NewTopics, describe_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.console.settings import Settings
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.console.browser import Browser


def create(client: Client, *names: str, partitions: int = 1, **configs: str) -> None:
    new = NewTopics(names, partitions, None, {key.replace("_", "."): value for key, value in configs.items()})
    for result in new.ask(client):
        new.check(result)


def test_the_cluster_is_seen_at_a_glance(reader: Browser, broker: str) -> None:
    page = reader.page("/")

    assert page.title == "Cluster"
    [[node_id, state, address, *_]] = page.rows("Brokers")
    assert (node_id, state, address) == ("1", "up", broker)
    assert "node 1" in page.source, "the controller"


def test_topics_come_a_hundred_a_page_and_are_found_by_a_part_of_their_names(
    reader: Browser, client: Client
) -> None:
    create(client, *(f"paged-{number:03}" for number in range(120)))

    first = reader.page("/topics", q="PAGED-")
    second = reader.page(first.links["Next page"])
    found = reader.page("/topics", q="paged-11")

    assert [row[0] for row in first.rows("Topics")] == [f"paged-{number:03}" for number in range(100)]
    assert [row[0] for row in second.rows("Topics")] == [f"paged-{number:03}" for number in range(100, 120)]
    assert second.links["Previous page"] == "/topics?q=PAGED-&page=0"
    assert len(found.rows("Topics")) == 10
    assert "Next page" not in found.links


def test_a_page_of_10_000_topics_has_a_hundred_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
    )
    topics = [
        MetadataResponseTopic(error_code=0, name=f"t-{number:05}", partitions=[partition])
        for number in range(10_000)
    ]
    monkeypatch.setattr(
        Client, "metadata", lambda _client, _topics: MetadataResponse(brokers=[], topics=topics)
    )
    monkeypatch.setattr(Settings, "asks_for_user", lambda _settings: False)

    with Browser(Settings("127.0.0.1:1")) as browser:
        page = browser.page("/topics", page="42")

    assert [row[0] for row in page.rows("Topics")] == [f"t-{number:05}" for number in range(4200, 4300)]
    assert len(page.source) < 100_000


def test_a_topic_shows_its_partitions_what_it_sets_itself_and_where_it_lies(
    reader: Browser, client: Client
) -> None:
    create(client, "shown", partitions=2, retention_ms="60000")

    page = reader.page("/topics/shown")

    assert "<dt>configs</dt>" not in page.source, "they have a section"
    titles, *rows = page.tables["Partitions of shown"]
    at = [titles.index(title) for title in ("Partition", "Leader", "Replicas", "First offset", "End offset")]
    assert [[row[place] for place in at] for row in rows] == [
        ["0", "1", "1", "0", "0"],
        ["1", "1", "1", "0", "0"],
    ]
    assert [row[:3] for row in page.rows("Set by the topic itself")] == [
        ["retention.ms", "60000", "dynamic topic"]
    ]
    defaults = {row[0]: row[1] for row in page.rows("In force from the broker or by default")}
    assert defaults["cleanup.policy"] == "delete"
    assert "retention.ms" not in defaults
    assert [row[:2] for row in page.rows("Replicas of shown")] == [["0", "1"], ["1", "1"]]


def test_an_unknown_topic_is_not_found(reader: Browser, client: Client) -> None:
    create(client, "orders")

    answer = reader.get("/topics/order")

    assert answer.status == 404
    assert "Did you mean &#39;orders&#39;?" in answer.page.source


def test_a_topic_is_created_altered_and_deleted(writer: Browser, client: Client) -> None:
    create(client, "before")
    created = writer.send(
        writer.page("/topics"), "/topics", name="made", partitions="2", configs="retention.ms=60000\n"
    )
    assert (created.path, created.page.title) == ("/topics/made", "Topic made")
    assert [row[0] for row in created.page.rows("Set by the topic itself")] == ["retention.ms"]

    more = writer.send(created.page, "/topics/made/partitions", partitions="3")
    assert len(more.page.rows("Partitions of made")) == 3

    changed = writer.send(more.page, "/topics/made/configs", key="cleanup.policy", value="compact")
    assert [row[:2] for row in changed.page.rows("Set by the topic itself")] == [
        ["cleanup.policy", "compact"],
        ["retention.ms", "60000"],
    ]
    back = writer.send(changed.page, "/topics/made/configs", key="cleanup.policy")
    assert [row[0] for row in back.page.rows("Set by the topic itself")] == ["retention.ms"]

    mistyped = writer.send(back.page, "/topics/made/delete", name="before")
    assert mistyped.status == 400
    assert [topic.name for topic in describe_topics(client, ["before", "made"])] == ["before", "made"]
    deleted = writer.send(back.page, "/topics/made/delete", name="made")
    assert deleted.path == "/topics"
    assert writer.get("/topics/made").status == 404


def test_what_the_cluster_refuses_is_told(writer: Browser, client: Client) -> None:
    create(client, "refusing", partitions=2)
    page = writer.page("/topics/refusing")

    misspelt = writer.send(page, "/topics/refusing/configs", key="retention.mss", value="1")
    unset = writer.send(page, "/topics/refusing/configs", key="retention.mss")
    by_default = writer.send(page, "/topics/refusing/configs", key="retention.ms")
    fewer = writer.send(page, "/topics/refusing/partitions", partitions="1")
    nonsense = writer.send(page, "/topics/refusing/partitions", partitions="many")

    none = writer.send(writer.page("/topics"), "/topics", name="none", partitions="0")

    for answer in (misspelt, unset, by_default, fewer, nonsense, none):
        assert answer.status == 400
    assert "partitions: &#39;many&#39; is no whole number" in nonsense.page.source
    assert "Did you mean &#39;retention.ms&#39;?" in misspelt.page.source
    assert "does not set &#39;retention.mss&#39; itself. Did you mean" in unset.page.source
    assert "does not set &#39;retention.ms&#39; itself." in by_default.page.source
