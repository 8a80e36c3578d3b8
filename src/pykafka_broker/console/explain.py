"""Why a group rebalances, a producer was fenced, a partition is offline, a request waits."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.explain.explanation import Explanation, Fact
from pykafka_broker.cli.explain.gathering import explained
from pykafka_broker.cli.explain.partition import named
from pykafka_broker.cli.wording import record_time
from pykafka_broker.console.page import Field, Form, Page, Part, Row, Section, Text, listing, page_of, url
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.history import Kind

PATH = "/explain"
#: What a name means, by the kind that a visitor chooses.
KINDS = {
    Kind.GROUP: "a group",
    Kind.PRODUCER: "a transactional id or producer id",
    Kind.PARTITION: "a partition, as orders-0",
    Kind.REQUEST: "a client id or principal, for its requests",
}
COLUMNS = (
    Column("LAST"),
    Column("TIMES", is_number=True),
    Column("SINCE", drop=1),
    Column("BROKER", is_number=True),
    Column("DECISION", is_prose=True),
    Column("WHAT TO DO", is_prose=True, drop=2),
)


def explain_url(kind: Kind, name: str) -> str:
    """The URL of the page that explains a thing."""
    return url(PATH, kind=kind.value, name=name)


def show(visit: Visit) -> Page:
    """The page that asks what to explain, and explains it.

    Raises:
        click.ClickException: there is no such kind, or the name is none of a partition.
        KafkaError: there is no such thing.
    """
    # As it is: the name of a group may begin and end with spaces.
    name = visit.query.get("name", "")
    try:
        kind = Kind(visit.asked("kind") or Kind.GROUP)
        if name and kind is Kind.PARTITION:
            name = named(name)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    fields = (
        Field("kind", "What", kind.value, "select", [(each.value, words) for each, words in KINDS.items()]),
        Field("name", "Name", name, is_required=True),
    )
    sections = [Section("Ask", (Form(PATH, "Explain", fields, method="get"),))]
    if name:
        answer = parts(visit, PATH, explained(visit.client, kind, name, own=visit.settings.history))
        sections.append(Section(f"{kind.value.capitalize()} {name}", answer))
    return Page("Explain", sections)


def parts(visit: Visit, path: str, found: Explanation) -> Sequence[Part]:
    """An explanation on the page of a path, with one page of its history."""
    bootstrap = Cluster(visit.settings.bootstrap, visit.settings.timeout_s)
    found = found.with_commands(bootstrap.addressed)
    shown: list[Part] = [Text(f"{fact.text} {fact.remedy}".rstrip(), "plain") for fact in found.now]
    if found.asked_nodes:
        newest_first, pages = page_of(found.history[::-1], path, visit.query)
        caption = f"History of {found.kind} {found.name}, the newest first"
        shown.append(listing(Table(COLUMNS), caption, [_row(fact) for fact in newest_first], pages))
    return [*shown, *(Text(f"History not available: {why}") for why in found.missing)]


def _row(fact: Fact) -> Row:
    last, first = (None if at is None else record_time(at) for at in (fact.last_ms, fact.first_ms))
    return [last, fact.times, first if fact.times > 1 else None, fact.node_id, fact.text, fact.remedy or None]
