"""The numbers of the cluster's page that change: records that come in a second, and the lag of all groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from pykafka_broker.cli.group_state import SHARE, list_groups
from pykafka_broker.client.offsets import LATEST, list_offsets
from pykafka_broker.console.groups import committed
from pykafka_broker.console.page import Chart, Part, Text
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The most partitions and groups whose offsets are asked for each time.
PARTITIONS, GROUPS = 2_000, 50
THROUGHPUT, LAG = "records per second", "lag"


def charts() -> list[Part]:
    """What the events draw."""
    return [
        Chart(THROUGHPUT, "Records that come in a second"),
        Chart(LAG, "Lag of all groups, in records"),
        Text(f"Of {PARTITIONS:,} partitions and {GROUPS} groups at most, the first by their names."),
    ]


def follow(visit: Visit) -> Callable[[], object]:
    """The throughput since the last time, and the lag now."""
    clock, client = SystemClock(), visit.client
    partitions: list[PartitionKey] = sorted(
        islice(
            (
                (str(topic.name), p.partition_index)
                for topic in sorted(client.metadata(None).topics, key=lambda topic: str(topic.name))
                if not topic.is_internal
                for p in topic.partitions
            ),
            PARTITIONS,
        )
    )
    groups = [
        name for name, group in sorted(list_groups(client).items()) if group.group_type.lower() != SHARE
    ]
    last: list[tuple[int, dict[PartitionKey, int]]] = []

    def numbers() -> object:
        ends = list_offsets(client, dict.fromkeys(partitions, LATEST), missing_ok=True)
        now_ms = clock.monotonic_ms()
        commits = [committed(client, name) for name in groups[:GROUPS]]
        lag = sum(
            max(0, ends[key] - one.offset) for each in commits for key, one in each.items() if key in ends
        )
        news: dict[str, float] = {LAG: lag}
        if last:
            before_ms, before = last.pop()
            new = sum(max(0, end - before[key]) for key, end in ends.items() if key in before)
            news[THROUGHPUT] = round(new * 1000 / max(1, now_ms - before_ms), 1)
        last.append((now_ms, ends))
        return news

    return numbers
