"""The members of a streams group (KIP-1071) while it grows, played over bare sockets with our own codec.

The application has one subtopology with a store, and two tasks for each of a hundred members. Fifty of them
have settled with four tasks each; then fifty others join in the same moment, so that every member has to give
up tasks or to wait for some. A member says at once what it has given up or taken, and else beats every 20 ms,
so that it is the coordinator that is waited for and not the pauses of clients.
"""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench import shares, wire
from bench.pinger import no_pauses
from pykafka_broker.client.blocking import ResponseBuffer
from pykafka_broker.protocol.epochs import LEAVE_EPOCH
from pykafka_broker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from pykafka_broker.testing.apache.nodes import Software

TOPIC = "bench-streamed"
MEMBERS, TASKS = 100, 200
PAUSE_S = 0.02
PATIENCE_S = 60.0
VERSION = 0
SUBTOPOLOGY = "0"
#: A group that is assigned its tasks whenever it changes.
AT_ONCE = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}
#: Kafka's defaults but for the wait before the first assignment.
DEFAULTS = {"streams.initial.rebalance.delay.ms": "0"}
#: Longer than the least time between two assignments by default.
ASSIGNMENT_S = 1.2
#: Groups that grow for each figure.
ROUNDS = 5


def topology() -> Topology:
    """One that reads the topic and keeps a store."""
    store = TopicInfo(name=f"{TOPIC}-store-changelog", partitions=0, replication_factor=0, topic_configs=[])
    part = Subtopology(
        subtopology_id=SUBTOPOLOGY,
        source_topics=[TOPIC],
        source_topic_regex=[],
        state_changelog_topics=[store],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    return Topology(epoch=0, subtopologies=[part])


class Member:
    """One member of a group, on a connection of its own."""

    def __init__(self, address: str, group: str, name: str) -> None:
        self.connection = wire.connect(address)
        self.group, self.name = group, name
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self._said: frozenset[int] | None = None
        self._unchanged = b""

    @property
    def has_news(self) -> bool:
        """It has to say that it has given up or taken tasks."""
        return self.owned != self._said

    def beat(self) -> None:
        """Send a heartbeat that says what is new."""
        if self._said is None:
            frame = self._frame(
                topology=topology(),
                process_id=f"process-{self.name}",
                rebalance_timeout_ms=60_000,
                **self._tasks(),
            )
        elif self.has_news:
            frame = self._frame(**self._tasks())
        else:
            self._unchanged = frame = self._unchanged or self._frame()
        self._said = self.owned
        self.connection.sendall(frame)

    def _tasks(self) -> dict[str, list[TaskIds]]:
        active = [TaskIds(subtopology_id=SUBTOPOLOGY, partitions=sorted(self.owned))] if self.owned else []
        return {"active_tasks": active, "standby_tasks": [], "warmup_tasks": []}

    def _frame(self, **said: Any) -> bytes:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch,
            endpoint_information_epoch=0,
            **said,
        )
        return wire.frame(request, VERSION)

    def beaten(self, received: memoryview) -> None:
        """Take the answer: give up and take tasks as it says, which takes no time."""
        answer: StreamsGroupHeartbeatResponse = wire.answer(StreamsGroupHeartbeatRequest, VERSION, received)
        if answer.error_code in shares.NOT_YET and not self.epoch:
            self._said = None
            return
        assert not answer.error_code, answer
        if answer.member_epoch != self.epoch:
            self.epoch, self._unchanged = answer.member_epoch, b""
        if answer.active_tasks is not None:
            self.owned = frozenset(index for tasks in answer.active_tasks for index in tasks.partitions)

    def leave(self) -> None:
        self.epoch = LEAVE_EPOCH
        self.connection.sendall(self._frame())
        ResponseBuffer().receive(self.connection)
        self.connection.close()


def converged(members: Sequence[Member]) -> bool:
    """Whether all have the same epoch, have said that they have their tasks, and as many of them."""
    return (
        len({member.epoch for member in members}) == 1
        and all(len(member.owned) * len(members) == TASKS for member in members)
        and not any(member.has_news for member in members)
    )


def converge(members: Sequence[Member]) -> float:
    """The seconds until these are all members, and have converged; no answer is on its way then."""
    by_number = {member.connection.fileno(): member for member in members}
    receive = ResponseBuffer().receive
    due: list[tuple[float, int]] = []
    with no_pauses(), shares.polled(member.connection for member in members) as poll:
        begun = time.perf_counter()
        # Those that are no members yet are the change: they come first.
        for member in sorted(members, key=lambda each: each.epoch):
            member.beat()
        on_the_way, seconds = len(members), 0.0
        while on_the_way or not seconds:
            now = time.perf_counter()
            assert now < begun + PATIENCE_S, "the members do not converge"
            while due and due[0][0] <= now and not seconds:
                _, number = heapq.heappop(due)
                by_number[number].beat()
                on_the_way += 1
            patience = PATIENCE_S if seconds or not due else max(0.0, due[0][0] - now)
            for number, _ in poll.poll(patience):
                member = by_number[number]
                member.beaten(receive(member.connection))
                on_the_way -= 1
                now = time.perf_counter()
                heapq.heappush(due, (now if member.has_news else now + PAUSE_S, number))
            if not seconds and converged(members):
                seconds = time.perf_counter() - begun
    return seconds


def grown(address: str, group: str, settings: dict[str, str]) -> float:
    """The seconds in which a group grows from fifty members to a hundred."""
    shares.configure(address, [group], settings)
    members = [Member(address, group, f"member-{number:03}") for number in range(MEMBERS)]
    converge(members[: MEMBERS // 2])
    if settings is DEFAULTS:
        time.sleep(ASSIGNMENT_S)
    seconds = converge(members)
    for member in members:
        member.leave()
    return seconds


def streams_rebalance(software: Software, scale: float) -> dict[str, float]:
    """Groups that are assigned their tasks at each change, and with Kafka's least time between two
    assignments, each the median of five; as many unmeasured ones come first, for compilers.
    """
    rounds = max(1, int(ROUNDS * scale))
    with shares.broker(software) as running:
        address = running.address
        shares.create(address, TOPIC, TASKS)
        shares.ready(address, "warm-up-0")
        for turn in range(rounds):
            grown(address, f"warm-up-{turn}", AT_ONCE)
        at_once = [grown(address, f"at-once-{turn}", AT_ONCE) for turn in range(rounds)]
        by_default = [grown(address, f"by-default-{turn}", DEFAULTS) for turn in range(rounds)]
    return {"seconds": statistics.median(at_once), "default_seconds": statistics.median(by_default)}


StreamsRow = Callable[[Software, float], dict[str, float]]

#: The rows by their names in the table.
ROWS: dict[str, StreamsRow] = {row.__name__: row for row in (streams_rebalance,)}
