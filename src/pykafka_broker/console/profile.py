"""What is in a topic, as `topics profile` counts it: all of it, or what can be counted in some seconds."""

from __future__ import annotations

import time

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.offsets import parse_since_ms
from pykafka_broker.cli.topic_profile import needing_numpy, profile_tables, ranges_since
from pykafka_broker.console.messages import chosen, readable
from pykafka_broker.console.page import Field, Form, Link, Page, Part, Section, Text, listing, topic_url
from pykafka_broker.console.visit import Visit
from pykafka_broker.system.wording import argument

#: The time after which a page counts no more, once it has the answer that it waits for.
COUNTED_S = 5.0


def show(visit: Visit) -> Page:
    """The page of what is in a topic.

    Raises:
        click.ClickException: numpy is not installed, or a field has no time or no partition.
        KafkaError: there is no such topic or partition.
    """
    with needing_numpy():
        from pykafka_broker.arrow.core.limits import Limits
        from pykafka_broker.arrow.profiling import HOT_KEYS, profile
        from pykafka_broker.arrow.sources import Reading, topic_source
    topic, since = visit.path["topic"], visit.asked("since")
    partitions, left_out = readable(visit)
    since_ms = parse_since_ms(since, time.time_ns() // 1_000_000) if since else None
    limits = Limits(timeout_s=visit.settings.timeout_s)
    source = topic_source(visit.client, topic, Reading(ranges_since(since_ms, partitions), limits=limits))
    until_s = time.monotonic() + COUNTED_S
    found = profile(source, limits, HOT_KEYS, is_enough=lambda: time.monotonic() >= until_s)

    fields = (
        Field("since", "Since", since, hint="90s, 30m, 1h, 7d, or a time; all records if empty"),
        Field("partition", "Partition", visit.asked("partition"), hint="all if empty"),
    )
    parts: list[Part] = [Form(topic_url(topic, "/profile"), "Count", fields, method="get"), *left_out]
    wanted = sum(end - start for start, end in source.wanted.values())
    counted = sum(each.end_offset - each.start_offset for each in found.partitions)
    if counted < wanted:
        parts += [
            Text(
                f"After {COUNTED_S:g} seconds, {counted:,} of {wanted:,} offsets are counted, more of some "
                "partitions than of others. Choose a later start, or count all of them with",
                "warning",
            ),
            Text(_command(visit, topic, since_ms, chosen(visit)), "code"),
        ]
    tables = [
        Section(name, (listing(table, f"{name} of {topic}"),))
        for name, table in profile_tables(found, "with pykafka-broker topics profile --json")
    ]
    return Page(
        f"Profile of {topic}",
        (Section("Count", parts), *tables),
        (Link("Topic", topic_url(topic)), Link("Records", topic_url(topic, "/messages"))),
    )


def _command(visit: Visit, topic: str, since_ms: int | None, partitions: tuple[int, ...]) -> str:
    """The command that counts the same, in the same cluster: since a time that does not move on meanwhile."""
    words = ["pykafka-broker topics profile", argument(topic)]
    words += [] if since_ms is None else [f"--since {since_ms}"]
    words += [f"--partition {partition}" for partition in partitions]
    # Commands are indented where a text proposes them (`cli/proposals.py`).
    proposed = f"  {' '.join(words)}"
    return Cluster(visit.settings.bootstrap, visit.settings.timeout_s).addressed(proposed).strip()
