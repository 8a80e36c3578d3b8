"""Topics: all of them, and one with its partitions, configs and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.configs import (
    DELETE,
    SET,
    TOPIC,
    Change,
    Resource,
    alter_configs,
    config_entries,
    entry_table,
    source_of,
)
from pykafka_broker.cli.options import INT16_MAX, INT32_MAX, pairs
from pykafka_broker.cli.suggestions import meant_config
from pykafka_broker.cli.topics import (
    NewTopics,
    Topic,
    add_partitions,
    delete_topics,
    describe_topics,
    described_topic,
    topic_table,
)
from pykafka_broker.client.offsets import EARLIEST, LATEST, told_offsets
from pykafka_broker.client.reassignments import reassignments_as_told
from pykafka_broker.console import disks
from pykafka_broker.console.explain import explain_url
from pykafka_broker.console.page import (
    Field,
    Form,
    Link,
    Page,
    Part,
    Row,
    Section,
    Text,
    if_told,
    listing,
    marked,
    page_of,
    topic_url,
    url,
)
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import KafkaError

COLUMNS = (
    Column("TOPIC"),
    Column("PARTITIONS", is_number=True),
    Column("REPLICATION FACTOR", is_number=True),
    Column("LACKING REPLICAS", is_number=True),
)


def show_all(visit: Visit) -> Page:
    """The page of all topics, or of those with a text in their names."""
    wanted = visit.asked("q")
    found = sorted(
        (topic for topic in visit.client.metadata(None).topics if wanted.lower() in str(topic.name).lower()),
        key=lambda topic: (topic.is_internal, str(topic.name)),
    )
    rows, pages = page_of(found, "/topics", visit.query)
    search = Form("/topics", "Search", (Field("q", "Name contains", wanted, "search"),), method="get")
    table = listing(Table(COLUMNS), "Topics", [_row(topic) for topic in rows], pages)
    sections = [Section("All topics", (search, table._replace(details=[("topics", len(found))])))]
    if visit.can_write:
        fields = (
            Field("name", "Name", is_required=True),
            Field("partitions", "Partitions", hint="the brokers' default if empty"),
            Field("replication_factor", "Replication factor", hint="the brokers' default if empty"),
            Field("configs", "Configs", kind="area", hint="one key=value a line"),
        )
        sections.append(Section("Create a topic", (Form("/topics", "Create", fields),)))
    return Page("Topics", sections)


def _row(topic: Any) -> Row:
    lacking = sum(len(p.isr_nodes) < len(p.replica_nodes) for p in topic.partitions)
    return [
        Link(str(topic.name), topic_url(str(topic.name))),
        len(topic.partitions),
        len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
        marked(lacking, is_well=not lacking),
    ]


def show(visit: Visit) -> Page:
    """The page of a topic."""
    client, name = visit.client, visit.path["topic"]
    [answer] = describe_topics(client, [name])
    topic = described_topic(answer, {}, reassignments_as_told(client))
    holders = {node for partition in topic.partitions for node in partition.replicas}
    indexes = [partition.partition for partition in topic.partitions]
    sections = [
        Section("Partitions", _partitions(visit, topic)),
        Section("Configs", if_told(lambda: _configs(visit, name))),
        Section("On disk", if_told(lambda: disks.of_topic(client, name, indexes, holders))),
        *(_changes(name) if visit.can_write else ()),
    ]
    links = (Link("Records", topic_url(name, "/messages")), Link("Profile", topic_url(name, "/profile")))
    return Page(f"Topic {name}", sections, links)


def _changes(name: str) -> Sequence[Section]:
    """What a visitor may change."""
    more = (Field("partitions", "Number of partitions", kind="number", is_required=True),)
    config = (
        Field("key", "Key", is_required=True),
        Field("value", "Value", hint="the default if empty"),
    )
    confirm = (Field("name", f"Type {name} to delete it with all its records", is_required=True),)
    return (
        Section("Add partitions", (Form(topic_url(name, "/partitions"), "Add", more),)),
        Section("Set a config", (Form(topic_url(name, "/configs"), "Set", config),)),
        Section("Delete", (Form(topic_url(name, "/delete"), "Delete", confirm, is_dangerous=True),)),
    )


def _partitions(visit: Visit, topic: Topic) -> Sequence[Part]:
    """The partitions of a page with their first and end offsets, and a link to the explanation of each."""
    name, table = topic.topic, topic_table(topic)
    # Configs have a section of their own.
    details = [detail for detail in table.details if detail[0] != "configs"]
    shown, pages = page_of(list(zip(topic.partitions, table.rows, strict=True)), topic_url(name), visit.query)
    # Without a leader, nothing tells offsets.
    led = [(name, partition.partition) for partition, _ in shown if partition.leader is not None]
    try:
        first, end = (told_offsets(visit.client, dict.fromkeys(led, time)) for time in (EARLIEST, LATEST))
        untold: Sequence[Part] = ()
    except (KafkaError, OSError) as error:
        first, end = {}, {}
        untold = (Text(f"Offsets are not told: {error}"),)
    columns = (
        *table.columns,
        Column("FIRST OFFSET", is_number=True),
        Column("END OFFSET", is_number=True),
        Column("EXPLAIN"),
    )
    rows = [
        (*row, first.get(key), end.get(key), _explanation(*key))
        for partition, row in shown
        for key in [(name, partition.partition)]
    ]
    return (
        listing(table._replace(columns=columns, details=details), f"Partitions of {name}", rows, pages),
        *untold,
    )


def _explanation(topic: str, partition: int) -> Link:
    name = f"{topic}-{partition}"
    return Link(name, explain_url(Kind.PARTITION, name))


def _configs(visit: Visit, name: str) -> Sequence[Part]:
    """What the topic sets itself, and what is in force besides."""
    resource = Resource(TOPIC, name)
    entries = config_entries(visit.client, resource, documentation=True)
    own = [entry for entry in entries if entry.source == source_of(resource)]
    others = [entry for entry in entries if entry not in own]
    return (
        listing(entry_table("", own), "Set by the topic itself"),
        listing(entry_table("", others), "In force from the broker or by default"),
    )


# -- changes
# ----------


def create(visit: Visit) -> str:
    """Create a topic."""
    name = visit.given("name")
    lines = tuple(line for line in visit.given("configs").splitlines() if line.strip())
    new = NewTopics(
        [name],
        _number(visit, "partitions", INT32_MAX),
        _number(visit, "replication_factor", INT16_MAX),
        dict(pairs(lines, "Configs")),
    )
    for result in new.ask(visit.client):
        new.check(result)
    return url(topic_url(name), done="created")


def add(visit: Visit) -> str:
    """Give a topic more partitions."""
    name = visit.path["topic"]
    add_partitions(visit.client, name, _number(visit, "partitions", INT32_MAX) or 0)
    return url(topic_url(name), done="changed")


def configure(visit: Visit) -> str:
    """Set a config of a topic; without a value, it is the default again.

    Raises:
        click.ClickException: there is no value, and the topic does not set the config: Kafka's brokers accept
            the deletion of any key.
    """
    name, key, value = visit.path["topic"], visit.given("key"), visit.given("value")
    resource = Resource(TOPIC, name)
    found = () if value else config_entries(visit.client, resource, documentation=False, keys=[key])
    if not value and source_of(resource) not in [entry.source for entry in found]:
        meant = meant_config(key, TOPIC.resource_type)
        question = f" Did you mean {meant!r}?" if meant else ""
        raise click.ClickException(f"Nothing is changed: topic {name} does not set {key!r} itself.{question}")
    change = Change(key, SET, value) if value else Change(key, DELETE, None)
    alter_configs(visit.client, resource, [change], None, dry_run=False)
    return url(topic_url(name), done="changed")


def delete(visit: Visit) -> str:
    """Delete a topic whose name was typed."""
    name = visit.path["topic"]
    visit.confirm(name)
    for _ in delete_topics(visit.client, [name]):
        pass
    return "/topics?done=deleted"


def _number(visit: Visit, name: str, most: int) -> int | None:
    """A number of a form; None if the field is empty.

    Raises:
        click.ClickException: it is none, or too large.
    """
    number = visit.number(name) if visit.given(name) else None
    if number is not None and number > most:
        raise click.ClickException(f"{name}: {number} is more than {most}")
    return number
