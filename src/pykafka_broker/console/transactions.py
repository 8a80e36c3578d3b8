"""Transactions: those that coordinators know, those that hang, and how one is aborted.

A transaction hangs if a partition has it open, its producer has not written for longer than a transaction may
take, and no coordinator knows it: no time-out ends it. It is aborted with a marker, as by
`kafka-transactions.sh abort`. One that a coordinator knows is aborted by a producer with its id that begins,
as by `kafka-transactions.sh forceTerminateTransaction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.wording import record_time
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import leaders_of
from pykafka_broker.client.producer import Producer
from pykafka_broker.console.explain import explain_url
from pykafka_broker.console.page import (
    Field,
    Form,
    HtmlCell,
    Link,
    Page,
    Part,
    Row,
    Section,
    Text,
    if_told,
    listing,
    page_of,
    topic_url,
    url,
)
from pykafka_broker.console.visit import Visit
from pykafka_broker.doctor.topics import look, offsets, open_transactions
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pykafka_broker.system.wording import argument

STATES = {"Ongoing": "yellow", "CompleteCommit": "green", "CompleteAbort": "dim"}


def show_all(visit: Visit) -> Page:
    """The page of all transactions."""
    return Page(
        "Transactions",
        (
            Section("Known to coordinators", if_told(lambda: _known(visit))),
            Section("Open in partitions", if_told(lambda: _open(visit.client))),
        ),
    )


def _known(visit: Visit) -> Sequence[Part]:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    found = []
    for broker in sorted(broker.node_id for broker in visit.client.metadata([]).brokers):
        answer = visit.client.send(request, broker)
        check(answer.error_code)
        found += [(state.transactional_id, state, broker) for state in answer.transaction_states]
    shown, pages = page_of(sorted(found, key=lambda one: str(one[0])), "/transactions", visit.query)
    columns = (
        Column("TRANSACTIONAL ID"),
        Column("STATE"),
        Column("PRODUCER ID", is_number=True),
        Column("COORDINATOR", is_number=True),
    )
    rows: list[Row] = [
        [
            Link(name, url("/transactions/of", id=name)),
            state_cell(state.transaction_state),
            state.producer_id,
            broker,
        ]
        for name, state, broker in shown
    ]
    return (listing(Table(columns), "Transactional ids", rows, pages),)


def state_cell(state: str) -> Cell:
    """The state of a transaction in a table."""
    return Styled(state, STATES.get(state, ""))


def _open(client: Client) -> Sequence[Part]:
    """Transactions that hold up consumers with `isolation.level=read_committed`."""
    topics = look(client)
    held = [key for key, ends in offsets(client, topics).items() if ends.last_stable < ends.end]
    found = open_transactions(client, {topic.name: topic for topic in topics}, held)
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("FIRST OFFSET", is_number=True),
        Column("PRODUCER ID", is_number=True),
        Column("TRANSACTIONAL ID"),
    )
    rows: list[Row] = []
    for (topic, partition), transaction in sorted(found.items()):
        name, first = transaction.transactional_id, transaction.first_offset
        known: HtmlCell = Link(name, url("/transactions/of", id=name)) if name else "not told"
        if transaction.hangs:
            abort = url("/transactions/hanging", topic=topic, partition=partition, offset=first)
            known = Link("none: it hangs", abort)
        rows.append(
            [
                Link(topic, topic_url(topic)),
                partition,
                first,
                transaction.producer_id,
                known,
            ]
        )
    return (listing(Table(columns), "Open transactions", rows),)


def show(visit: Visit) -> Page:
    """The page of one transactional id."""
    name = visit.query.get("id", "")
    state = _described(visit.client, name)
    columns = (Column("TOPIC"), Column("PARTITIONS"))
    rows: list[Row] = [
        [Link(str(topic.topic), topic_url(topic.topic)), ", ".join(map(str, sorted(topic.partitions)))]
        for topic in state.topics
    ]
    started = record_time(state.transaction_start_time_ms)
    table = listing(Table(columns), f"Partitions of {name}", rows)._replace(
        details=[
            ("state", state_cell(state.transaction_state)),
            ("producer id", state.producer_id),
            ("producer epoch", state.producer_epoch),
            ("begun", started),
            ("time-out", f"{state.transaction_timeout_ms} ms"),
        ]
    )
    sections = [Section("Transaction", (table,))]
    if state.transaction_state == "Ongoing":
        command = f"forceTerminateTransaction --transactional-id {argument(name)}"
        hidden = (("id", name),)
        confirm = Field("name", f"Type {name} to abort its transaction", is_required=True)
        sections.append(_abort(visit, command, Form("/transactions/abort", "Abort", (confirm,), hidden)))
    links = (
        Link("All transactions", "/transactions"),
        Link("Explain its producer", explain_url(Kind.PRODUCER, name)),
    )
    return Page(f"Transactional id {name}", sections, links)


def _described(client: Client, name: str) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    for broker in sorted(broker.node_id for broker in client.metadata([]).brokers):
        [state] = client.send(request, broker).transaction_states
        if state.error_code != ErrorCode.NOT_COORDINATOR:
            check(state.error_code)
            return state
    raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


def show_hanging(visit: Visit) -> Page:
    """The page of a transaction that no coordinator knows."""
    topic, partition, first = visit.asked("topic"), visit.number("partition"), visit.number("offset")
    producer = _producer(visit.client, topic, partition, first)
    where = f"{topic}-{partition}"
    details = [
        ("producer id", producer.producer_id),
        ("producer epoch", producer.producer_epoch),
        ("first offset", producer.current_txn_start_offset),
        ("last written", record_time(producer.last_timestamp)),
    ]
    command = f"abort --topic {argument(topic)} --partition {partition} --start-offset {first}"
    hidden = (("topic", topic), ("partition", str(partition)), ("offset", str(first)))
    confirm = Field("name", f"Type {where} to abort the transaction there", is_required=True)
    form = Form("/transactions/hanging/abort", "Abort", (confirm,), hidden)
    about = listing(Table(details=details), f"Transaction in {where}")
    return Page(
        f"Open transaction in {where}",
        (Section("Transaction", (about,)), _abort(visit, command, form)),
        (Link("All transactions", "/transactions"),),
    )


def _abort(visit: Visit, command: str, form: Form) -> Section:
    told = f"kafka-transactions.sh --bootstrap-server {visit.settings.bootstrap} {command}"
    offered = (form._replace(is_dangerous=True),) if visit.can_write else ()
    return Section("Abort", (Text("Kafka's own tool does it with:"), Text(told, "code"), *offered))


def _producer(client: Client, topic: str, partition: int, first_offset: int) -> Any:
    """The producer with a transaction that begins at this offset.

    Raises:
        KafkaError: there is none, or the leader does not tell.
    """
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    answer = client.send(request, _leader(client, topic, partition)).topics[0].partitions[0]
    check(answer.error_code, answer.error_message)
    for producer in answer.active_producers:
        if producer.current_txn_start_offset == first_offset:
            return producer
    raise KafkaError(
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        f"No transaction is open at {first_offset} of {topic}-{partition}.",
    )


def _leader(client: Client, topic: str, partition: int) -> int:
    leaders = leaders_of(client.topic(topic, led=(partition,)))
    if partition not in leaders:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has no partition {partition}.")
    return leaders[partition]


def abort(visit: Visit) -> str:
    """Abort the transaction of an id: a producer with the id that begins fences the one before it.

    Raises:
        click.ClickException: it has ended, or is ending, meanwhile.
    """
    name = visit.form.get("id", "")
    visit.confirm(name)
    state = _described(visit.client, name).transaction_state
    if state != "Ongoing":
        raise click.ClickException(f"Nothing is aborted: the transaction of {name} is {state} now.")
    Producer(visit.client, name, delivery_timeout_s=visit.settings.timeout_s).initialise()
    return url("/transactions/of", id=name, done="aborted")


def abort_hanging(visit: Visit) -> str:
    """Write the marker that aborts a transaction which no coordinator knows."""
    topic, partition, first = visit.given("topic"), visit.number("partition"), visit.number("offset")
    visit.confirm(f"{topic}-{partition}")
    producer = _producer(visit.client, topic, partition, first)
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        # As Kafka's own tool does for a producer that no coordinator has known.
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )
    leader = _leader(visit.client, topic, partition)
    answer = visit.client.send(WriteTxnMarkersRequest(markers=[marker]), leader)
    for result in (each for one in answer.markers for told in one.topics for each in told.partitions):
        check(result.error_code)
    return "/transactions?done=aborted"
