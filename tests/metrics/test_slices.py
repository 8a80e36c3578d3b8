"""A scrape gives the event loop back after a number of lines and of partitions, however many there are.

The work of a slice is counted in lines of Python that run, not in time; `bench/scrapes.py` measures the time.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from pykafka_broker.metrics.exposition import LINES_PER_SLICE, exposition
from pykafka_broker.metrics.groups import FAMILIES
from pykafka_broker.metrics.http_connection import HttpConnections
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.metrics.pages import METRICS

TOPICS = 20


class Slice:
    """What a slice has done."""

    def __init__(self) -> None:
        self.lines = 0
        self.work = 0

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.work += 1
        return self.trace


def slices(parts: NodeParts) -> list[Slice]:
    """All slices of a scrape."""
    found: list[Slice] = []
    page = exposition(parts)
    traced = sys.gettrace()
    while True:
        one = Slice()
        sys.settrace(one.trace)
        try:
            part = next(page, None)
        finally:
            sys.settrace(traced)
        if part is None:
            return found
        one.lines = part.count("\n")
        found.append(one)


async def commit(user: User, topic: str, partitions: int) -> None:
    """Commit an offset of each partition."""
    await user.find_coordinator("readers")
    committed = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=0, committed_metadata=None)
        for index in range(partitions)
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=committed)]
    await user.send(OffsetCommitRequest(group_id="readers", member_id="", topics=topics), 9)


async def heaviest(partitions: int) -> int:
    """The work of the slice that has most, in a node whose topics have so many partitions each."""
    home = Home({"metrics.listeners": METRICS})
    async with home.running() as user:
        for number in range(TOPICS):
            await user.create_topic(f"topic-{number:02d}", partitions=partitions)
            await commit(user, f"topic-{number:02d}", partitions)
        page = home.broker.node.listeners.listeners[METRICS].service.new_connection
        assert isinstance(page, HttpConnections)
        found = slices(page.node())

    assert sum(one.lines for one in found) > 19 * TOPICS * partitions
    # The head of a family counts as one line, and is two.
    assert max(one.lines for one in found) <= LINES_PER_SLICE * 3 // 2
    return max(one.work for one in found)


async def test_a_slice_has_no_more_work_where_there_are_more_partitions() -> None:
    few, many = 50, 100
    more = await heaviest(many) - await heaviest(few)
    # If one slice went through all partitions, it would be a line for each at least.
    assert more < TOPICS * (many - few)


async def test_partitions_that_a_coordinator_loses_meanwhile_end_no_scrape() -> None:
    home = Home({"transaction.state.log.num.partitions": "2"})
    async with home.running() as user:
        await user.send(FindCoordinatorRequest(key_type=1, coordinator_keys=["payer"]), 4)
        shards = home.broker.node.broker.coordinators.transactions.shards
        await until(lambda: len(shards.loaded_partitions) == 2)
        family = next(one for one in FAMILIES if one.name == "pykafka_broker_transactional_ids")
        samples = iter(family.read(Scrape(home.broker.node.measured)))
        assert next(samples) is None
        for partition in shards.loaded_partitions:
            shards.unload(partition)
        assert ('{state="Ongoing"}', 0) in list(samples)
