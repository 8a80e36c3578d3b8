"""Spark's queries, by the progress that they commit to groups (`pykafka_broker.spark.commit_progress`)."""

from __future__ import annotations

import re

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.group_state import SHARE, list_groups
from pykafka_broker.client.offsets import LATEST, told_offsets
from pykafka_broker.console.groups import committed, group_url
from pykafka_broker.console.page import Link, Page, Row, Section, Text, listing
from pykafka_broker.console.visit import Visit

#: The most groups that are looked at.
GROUPS = 200
#: What `pykafka_broker.spark.progress.described` writes.
_QUERY = re.compile(r"Spark query (.+), batch (\d+)")


def show(visit: Visit) -> Page:
    """The page of Spark's queries."""
    client = visit.client
    names = sorted(name for name, group in list_groups(client).items() if group.group_type.lower() != SHARE)
    rows: list[Row] = []
    for name in names[:GROUPS]:
        commits = committed(client, name)
        queries = {
            match[1]: int(match[2]) for one in commits.values() if (match := _QUERY.match(one.metadata))
        }
        if not queries:
            continue
        ends = told_offsets(client, dict.fromkeys(commits, LATEST))
        for query in sorted(queries):
            offsets = {
                key: one.offset
                for key, one in commits.items()
                if one.metadata.startswith(f"Spark query {query}, ")
            }
            # Without the end of one partition the sum would be too small.
            is_told = offsets.keys() <= ends.keys()
            lag = sum(ends[key] - offset for key, offset in offsets.items()) if is_told else None
            topics = ", ".join(sorted({topic for topic, _ in offsets}))
            rows.append([query, queries[query], topics, len(offsets), lag, Link(name, group_url(name))])
    columns = (
        Column("QUERY"),
        Column("BATCH", is_number=True),
        Column("TOPICS", is_prose=True),
        Column("PARTITIONS", is_number=True),
        Column("LAG", is_number=True),
        Column("GROUP"),
    )
    footer = f"The first {GROUPS} of {len(names)} groups were looked at." if len(names) > GROUPS else None
    note = Text(
        "A query is shown once it commits its progress: commit_progress(spark, …) of pykafka_broker.spark."
    )
    return Page(
        "Spark's queries",
        (Section("Queries", (listing(Table(columns, footer=footer), "Queries of Spark", rows), note)),),
    )
