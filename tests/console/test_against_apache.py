"""The console of a cluster of Apache Kafka: every page is there, and changes change it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykafka_broker.cli.share_group_state import set_start_offsets
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.producer import Producer
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.apache.broker import ApacheBroker
from tests.console.browser import Browser
from tests.console.test_groups import committed, offsets
from tests.console.test_messages import values, written
from tests.console.test_transactions import hang, last_stable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with ApacheBroker({"transaction.partition.verification.enable": "false"}) as running:
        yield running.address


def test_pages_and_changes(writer: Browser, client: Client) -> None:
    made = writer.send(writer.page("/topics"), "/topics", name="made", partitions="1")
    assert made.page.title == "Topic made"
    written(client, "orders", "one", "two")
    committed(client, "billing", "orders", 1)
    set_start_offsets(client, "sharers", {("orders", 0): 1})
    producer = Producer(client, "payer", transaction_timeout_ms=600_000)
    producer.initialise()
    producer.write(("made", 0), build_batch([(0, b"k", b"v", ())]))
    hang(client, "orders")

    cluster = writer.page("/")
    assert [row[:2] for row in cluster.rows("Brokers")] == [["1", "up"]]
    assert "node 1" in cluster.source
    assert values(writer.page("/topics/orders/messages"), "orders")[:2] == ["one", "two"]
    assert "Set by the topic itself" in writer.page("/topics/orders").source
    assert [row[:5] for row in writer.page("/groups/of", group="billing").rows("Lag of billing")] == [
        ["orders", "0", "1", "3", "2"]
    ]
    assert writer.page("/groups/of", group="sharers").rows("Lag of sharers")
    for path in ("/quorum", "/access", "/disks", "/spark", "/groups", "/topics"):
        assert writer.page(path).title

    preview = writer.page("/groups/reset", group="billing", to="to_earliest")
    assert writer.send(preview, "/groups/reset").status == 200
    assert offsets(client, "billing") == {("orders", 0): 0}
    transactions = writer.page("/transactions")
    known = writer.page(transactions.links["payer"])
    assert writer.send(known, "/transactions/abort", name="payer").status == 200
    hanging = writer.page(transactions.links["none: it hangs"])
    assert writer.send(hanging, "/transactions/hanging/abort", name="orders-0").status == 200
    assert last_stable(client, "orders") == 4
    deleted = writer.send(writer.page("/topics/made"), "/topics/made/delete", name="made")
    assert deleted.path == "/topics"
