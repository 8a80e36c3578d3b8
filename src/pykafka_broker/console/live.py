"""The numbers of the cluster's page that change: records that come in a second, and the lag of all groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice

from pykafka_broker.cli.group_state import SHARE
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import LATEST, told_offsets
from pykafka_broker.console.group_look import commits, listed
from pykafka_broker.console.page import Chart, Part, Text
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The most partitions and groups whose offsets are asked for each time.
PARTITIONS, GROUPS = 2_000, 50
THROUGHPUT, LAG = "records per second", "lag"


def charts() -> list[Part]:
    """What the events draw."""
    return [
        Chart(THROUGHPUT, "Records that come in a second"),
        Chart(LAG, "Lag of all groups, in records"),
        Text(
            f"Of {PARTITIONS:,} partitions and {GROUPS} groups at most, the first by their names, without "
            "partitions that have no leader, and those created after this page was loaded."
        ),
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
    last: tuple[int, dict[PartitionKey, int]] | None = None

    def numbers() -> object:
        nonlocal last
        ends = told_offsets(client, dict.fromkeys(partitions, LATEST))
        now_ms = clock.monotonic_ms()
        found: dict[str, float] = {}
        # A coordinator that does not answer takes the lag away, and not the throughput.
        with suppress(KafkaError, OSError):
            if (lag := _lag(client, ends)) is not None:
                found[LAG] = lag
        if last is not None:
            before_ms, before = last
            new = sum(max(0, end - before[key]) for key, end in ends.items() if key in before)
            found[THROUGHPUT] = round(new * 1000 / max(1, now_ms - before_ms), 1)
        last = now_ms, ends
        return found

    return numbers


def _lag(client: Client, ends: Mapping[PartitionKey, int]) -> int | None:
    """The lag of the first groups in the partitions that end there; None if a coordinator does not tell."""
    groups, missing = listed(client)
    asked = [group for group in groups if group.kind != SHARE][:GROUPS]
    found = commits(client, asked)
    if missing or len(found) < len(asked):
        return None
    told = (each.items() for each in found.values())
    return sum(max(0, ends[key] - offset) for one in told for key, offset in one if key in ends)
