"""The cluster at a glance: brokers, controller, partitions that lack replicas, groups that do not read."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pykafka_broker.cli.brokers import broker_statuses, broker_table
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.explain.group import state_fact
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.quorum import QuorumStatus, quorum_status
from pykafka_broker.console import live
from pykafka_broker.console.group_look import DISTURBED, LAG_NOTE, Seen, causes, listed, look
from pykafka_broker.console.groups import LOOK_COLUMNS, look_cells
from pykafka_broker.console.page import (
    HtmlCell,
    Link,
    Page,
    Part,
    Row,
    Section,
    Text,
    if_told,
    listing,
    marked,
    topic_url,
)
from pykafka_broker.console.visit import Visit
from pykafka_broker.protocol.errors import KafkaError

#: The most partitions that are named of those that lack something, and groups of those that rebalance.
NAMED = 100
#: The most Empty groups, and the most Stable groups, whose lag is asked for: the first by their names.
ASKED = 100
#: The most Stable groups that are shown for their lag alone: those that are furthest behind.
FURTHEST = 10
#: The most groups whose coordinators are asked what is wrong: those that rebalance or cannot run come first.
EXPLAINED = 50


def show(visit: Visit) -> Page:
    """The page of the cluster."""
    client = visit.client
    topics = client.metadata(None).topics
    cluster_id, brokers = broker_statuses(client, topics)
    partitions = [(str(topic.name), p) for topic in topics for p in topic.partitions]
    lacking = [
        (name, p) for name, p in partitions if p.leader_id < 0 or len(p.isr_nodes) < len(p.replica_nodes)
    ]
    leaderless = sum(p.leader_id < 0 for _, p in lacking)
    details: list[tuple[str, HtmlCell]] = [
        ("cluster", cluster_id),
        ("controller", _controller(client)),
        ("brokers", len(brokers)),
        ("topics", len(topics)),
        ("partitions", len(partitions)),
        ("lacking replicas", marked(len(lacking), is_well=not lacking)),
        ("without leader", marked(leaderless, is_well=not leaderless)),
    ]
    rows: list[Row] = [
        [
            Link(name, topic_url(name)),
            p.partition_index,
            "none" if p.leader_id < 0 else p.leader_id,
            ", ".join(map(str, p.replica_nodes)),
            ", ".join(map(str, p.isr_nodes)),
        ]
        for name, p in lacking[:NAMED]
    ]
    footer = f"The first {NAMED} of {len(lacking)}." if len(lacking) > NAMED else None
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("LEADER", is_number=True),
        Column("REPLICAS"),
        Column("IN SYNC"),
    )
    table = listing(Table(columns, footer=footer), "Partitions that lack replicas or a leader", rows)
    shown = listing(broker_table(brokers), "Brokers")
    return Page(
        "Cluster",
        (
            Section("Brokers", (shown._replace(details=details),)),
            Section("Partitions that need a look", (table,)),
            Section("Groups that need a look", if_told(lambda: _groups(visit))),
            Section("Now", live.charts()),
        ),
        events="/events",
    )


def _groups(visit: Visit) -> Sequence[Part]:
    """The groups that rebalance or cannot run, those without members for which records wait, those in which
    their coordinators see a fault, and the other Stable ones that are furthest behind.
    """
    client = visit.client
    groups, missing = listed(client)
    disturbed = [group for group in groups if group.state in DISTURBED]
    empty, stable = ([group for group in groups if group.state == state] for state in ("Empty", "Stable"))
    asked = [*disturbed[:NAMED], *stable[:ASKED], *empty[:ASKED]]
    seen = look(client, asked)
    by_name = {group.name: group for group in asked}
    urgent = [by_name[each.name] for each in sorted(seen, key=_urgency)[:EXPLAINED]]
    why, untold = causes(client, visit.settings.history, urgent)
    rows: list[Row] = [
        [*look_cells(each), why.get(each.name, state_fact(each.state).text)]
        for each in seen
        if each.name in why or each.state not in ("Stable", "Empty") or (each.state == "Empty" and each.lag)
    ]
    furthest = sorted(
        (each for each in seen if each.state == "Stable" and each.lag and each.name not in why),
        key=lambda each: -(each.lag or 0),
    )[:FURTHEST]
    notes = [
        f"The first {most} of {len(which)} groups that {what}."
        for which, most, what in (
            (disturbed, NAMED, "rebalance or cannot run"),
            (empty, ASKED, "are Empty were asked for their lag"),
            (stable, ASKED, "are Stable were asked for their lag"),
        )
        if len(which) > most
    ]
    if len(asked) > EXPLAINED:
        notes.append(f"Why: only of the {EXPLAINED} most urgent of {len(asked)} groups.")
    notes += [f"Why is not known: {each}" for each in untold]
    footer = " ".join([*notes, LAG_NOTE, "The page of a group draws its lags, and says what it waits for."])
    named = "Groups that rebalance, cannot run, are Empty with a lag, or have a fault"
    behind = "Stable groups that are furthest behind"
    return (
        *(Text(each, "warning") for each in missing),
        listing(Table((*LOOK_COLUMNS, Column("WHY", is_prose=True))), named, rows),
        # A reader of the screen is told a table's caption, and others are not.
        *([Text(f"{behind}:")] if furthest else ()),
        listing(Table(LOOK_COLUMNS, footer=footer), behind, [look_cells(each) for each in furthest]),
    )


def _urgency(seen: Seen) -> tuple[bool, bool, float]:
    """Sorts groups; one that has committed nothing may have the greatest lag of all."""
    return seen.state == "Empty", seen.state == "Stable", -inf if seen.lag is None else -seen.lag


def _controller(client: Client) -> str:
    """The controller that leads, which clients are not told: the leader of the quorum."""
    try:
        found = quorum_status(client)
    except KafkaError as error:
        return f"not told: {error.message or error.code.name}"
    return f"node {found.leader_id}" if isinstance(found, QuorumStatus) else "none leads"
