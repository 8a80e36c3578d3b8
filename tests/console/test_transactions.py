"""Transactions: known ones and hanging ones, and how each is aborted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.offsets import LATEST, list_offsets
from pykafka_broker.client.producer import Producer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from tests.cli.conftest import RunningBroker
from tests.console.browser import Browser
from tests.console.test_topics import create

#: The last version of Produce with which a client adds partitions to its transaction by itself.
LAST_BEFORE_TRANSACTIONS_2 = 11


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that takes records of transactions without asking their coordinator."""
    unverified = ["transaction.partition.verification.enable=false"]
    with RunningBroker(tmp_path_factory.mktemp("data"), overrides=unverified) as running:
        yield running.address


def last_stable(client: Client, topic: str) -> int:
    return list_offsets(client, {(topic, 0): LATEST}, isolation_level=1)[topic, 0]


def hang(client: Client, topic: str, timestamp_ms: int = 0) -> None:
    """Write a batch of a transaction that no coordinator knows."""
    fields = BatchFields(producer_id=4242, producer_epoch=0, base_sequence=0, transactional=True)
    batch = build_batch([(timestamp_ms, b"k", b"v", ())], fields)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(transactional_id="lost", acks=-1, timeout_ms=10_000, topic_data=[data])
    answer = client.send(request, client.leaders(topic)[0], LAST_BEFORE_TRANSACTIONS_2)
    check(answer.responses[0].partition_responses[0].error_code)


def test_an_open_transaction_is_shown_and_aborted(writer: Browser, client: Client, broker: str) -> None:
    create(client, "paid")
    producer = Producer(client, "payer one")
    producer.initialise()
    producer.write(("paid", 0), build_batch([(0, b"k", b"v", ())]))
    assert last_stable(client, "paid") == 0

    transactions = writer.page("/transactions")
    page = writer.page(transactions.links["payer one"])

    assert [row[:2] for row in transactions.rows("Transactional ids")] == [["payer one", "Ongoing"]]
    assert [row[:3] for row in transactions.rows("Open transactions")] == [["paid", "0", "0"]]
    assert page.rows("Partitions of payer one") == [["paid", "0"]]
    producer_page = writer.page(page.links["Explain its producer"])
    assert "The transactional id payer one belongs to producer id " in producer_page.source
    command = (
        f"kafka-transactions.sh --bootstrap-server {broker} forceTerminateTransaction "
        "--transactional-id &#39;payer one&#39;"
    )
    assert command in page.source
    assert writer.send(page, "/transactions/abort", name="payer").status == 400
    done = writer.send(page, "/transactions/abort", name="payer one")
    assert ">Empty<" in done.page.source
    assert last_stable(client, "paid") == 2, "the record and its marker"
    with pytest.raises(KafkaError):
        producer.write(("paid", 0), build_batch([(0, b"k", b"v", ())]))
        producer.commit()


def test_a_hanging_transaction_is_shown_and_aborted(writer: Browser, client: Client, broker: str) -> None:
    """A batch of a transaction that no coordinator has begun, as a broker without verification takes it."""
    create(client, "hung")
    hang(client, "hung")
    transactions = writer.page("/transactions")
    page = writer.page(transactions.links["none: it hangs"])

    assert [row[:3] for row in transactions.rows("Open transactions")] == [["hung", "0", "0"]]
    assert (
        f"kafka-transactions.sh --bootstrap-server {broker} abort --topic hung --partition 0 --start-offset 0"
        in page.source
    )
    assert writer.send(page, "/transactions/hanging/abort", name="hung").status == 400
    done = writer.send(page, "/transactions/hanging/abort", name="hung-0")
    assert done.path == "/transactions"
    assert last_stable(client, "hung") == 2
    assert "Open transactions" not in done.page.tables


def test_a_transaction_that_was_just_written_to_is_not_taken_for_a_hanging_one(
    writer: Browser, client: Client
) -> None:
    """It may have ended while the coordinators were asked, or be of an id that the user may not describe."""
    create(client, "fresh")
    hang(client, "fresh", time.time_ns() // 1_000_000)

    page = writer.page("/transactions")

    assert [row[:3] for row in page.rows("Open transactions")] == [["fresh", "0", "0"]]
    assert "none: it hangs" not in page.links
    assert ">not told<" in page.source


def test_a_transaction_that_was_committed_meanwhile_is_not_said_to_be_aborted(
    writer: Browser, client: Client
) -> None:
    create(client, "settled")
    producer = Producer(client, "settler")
    producer.initialise()
    producer.write(("settled", 0), build_batch([(0, b"k", b"v", ())]))
    page = writer.page("/transactions/of", id="settler")
    producer.commit()

    refused = writer.send(page, "/transactions/abort", name="settler")
    assert refused.status == 400
    assert "Nothing is aborted: the transaction of settler is CompleteCommit now." in refused.page.source


def test_an_unknown_id_is_not_found(reader: Browser) -> None:
    assert reader.get("/transactions/of", id="nobody").status == 404
    assert reader.get("/transactions/hanging", topic="nothing", partition="0", offset="0").status == 404
