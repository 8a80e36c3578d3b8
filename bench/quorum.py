"""A quorum of three controllers, each a process of its own: elections, commits, idling, and a start.

The controllers are a cluster without brokers. What is committed are changes of the configuration of a group,
one record each, asked of the listener of controllers; an answer says that a majority has the record on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import get_args

from bench import wire
from bench.pinger import quantile
from bench.process import cpu_seconds, resident_megabytes
from pykafka_broker.client.aio import AsyncConnection, connect
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.processes import BrokerError

VOTERS = (1, 2, 3)
#: As a controller on a small machine is started; the options of tests are for short lives.
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseG1GC")
GROUP = 32
#: One for each connection.
GROUPS = tuple(f"bench-{number}" for number in range(16))
#: Records of one request, where a log is filled.
FILLED_AT_ONCE = 200
SESSION_TIMEOUT, SHORTEST_MS = "consumer.session.timeout.ms", 45_000
SETTLE_S, IDLE_WINDOW_S = 10.0, 30.0
PATIENCE_S = 60.0
#: How often a controller is asked whether it leads now: the resolution of an election.
ASK_EVERY_S = 0.002


def change(turn: int, *groups: str) -> IncrementalAlterConfigsRequest:
    """Set the session timeout of groups, to another value than in the turn before."""
    value = str(SHORTEST_MS + turn % 1_000)
    session_timeout = AlterableConfig(name=SESSION_TIMEOUT, config_operation=0, value=value)
    resources = [
        AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[session_timeout])
        for group in groups
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


@contextlib.contextmanager
def quorum(software: str) -> Iterator[Nodes]:
    """Three voters of one kind, started."""
    kind: Software = "apache" if software == "apache" else "ours"
    assert software in get_args(Software)
    with tempfile.TemporaryDirectory(prefix="bench-quorum-") as folder:
        nodes = Nodes(Path(folder), dict.fromkeys(VOTERS, kind), dynamic=True)
        for node in nodes:
            node.jvm_options = JVM_OPTIONS
        with nodes:
            settled(nodes)
            yield nodes


def settled(nodes: Nodes) -> int:
    """The leader, once all voters have its log."""
    described = nodes.quorum(
        lambda found: (
            found.high_watermark > 0
            and all(voter.log_end_offset >= found.high_watermark for voter in found.current_voters)
        )
    )
    return described.leader_id


# -- elections -------------------------------------------------------------------------------------------


def elections(nodes: Nodes, rounds: int) -> dict[str, float]:
    """From the end of the active controller until another commits a change; killed and stopped in turn."""
    took: dict[str, list[float]] = {"kill": [], "stop": []}
    for turn in range(rounds):
        for how, end in (("kill", signal.SIGKILL), ("stop", signal.SIGTERM)):
            took[how].append(asyncio.run(election(nodes, end, 2 * turn + (how == "stop"))))
    for times in took.values():
        times.sort()
    figures = {
        f"{how}_{name}": quantile(times, share) * 1e3
        for how, times in took.items()
        for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95))
    }
    return {**figures, "kill_max_ms": took["kill"][-1] * 1e3}


async def election(nodes: Nodes, end: signal.Signals, turn: int) -> float:
    """One round; the ended controller is back when this returns."""
    old = nodes[settled(nodes)]
    request = change(turn, GROUPS[0])
    others = [node for node in nodes if node is not old]
    connections = [await connect(parse_address(node.controller_address)) for node in others]
    await asyncio.sleep(0.5)  # followers wait in their Fetch, as they do most of the time
    try:
        assert old.process is not None
        ended = time.perf_counter()
        old.process.send_signal(end)
        asking = [asyncio.ensure_future(committed(connection, request)) for connection in connections]
        done, late = await asyncio.wait(asking, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        took = time.perf_counter() - ended
        for task in late:
            task.cancel()
        if not done:
            raise BrokerError("no other controller leads")
    finally:
        for connection in connections:
            await connection.close()
    old.process.wait(PATIENCE_S)
    old.process = None
    old.start()
    return took


async def committed(connection: AsyncConnection, request: IncrementalAlterConfigsRequest) -> None:
    """Return when this controller has committed the change."""
    while True:
        answer = await connection.send(request, 1)
        if not answer.responses[0].error_code:
            return
        await asyncio.sleep(ASK_EVERY_S)


# -- commits ---------------------------------------------------------------------------------------------


class Changer:
    """Changes the configuration of one group, again and again."""

    def __init__(self, group: str) -> None:
        self._frames = [wire.frame(change(turn, group), 1) for turn in range(2)]
        self._turns = count()

    def begin(self) -> bytes:
        return self._frames[next(self._turns) % 2]

    def answered(self, received: memoryview) -> None:
        # Correlation id and tags, throttle time, one resource: its error code.
        error_code = int.from_bytes(received[14:16], "big")
        assert error_code == 0, bytes(received)


def commits(nodes: Nodes, turns: int) -> dict[str, float]:
    """Changes by sixteen connections to the active controller, each waits for its answer; after as many
    unmeasured ones, for compilers.
    """
    leader = nodes[settled(nodes)]
    wire.many_connections(leader.controller_address, [Changer(group) for group in GROUPS], turns)
    before = {node.node_id: cpu_seconds(node.pid) for node in nodes}
    figures = wire.many_connections(leader.controller_address, [Changer(group) for group in GROUPS], turns)
    used = sum(cpu_seconds(node.pid) - before[node.node_id] for node in nodes)
    return {
        "per_s": figures["per_s"],
        "p50_ms": figures["p50_ms"],
        "p99_ms": figures["p99_ms"],
        "per_core": turns * (1 + wire.WARM_UP) / used,
    }


# -- idling ----------------------------------------------------------------------------------------------


def idle(nodes: Nodes) -> dict[str, float]:
    """All three together."""
    time.sleep(SETTLE_S)
    before, started = sum(cpu_seconds(node.pid) for node in nodes), time.perf_counter()
    time.sleep(IDLE_WINDOW_S)
    used = sum(cpu_seconds(node.pid) for node in nodes) - before
    return {
        "cpu": used / (time.perf_counter() - started) * 100,
        "memory": sum(resident_megabytes(node.pid) for node in nodes),
    }


# -- a start ---------------------------------------------------------------------------------------------


def start(nodes: Nodes, records: int, rounds: int) -> dict[str, float]:
    """From the start of a voter that was killed until the leader knows that it has the whole log."""
    asyncio.run(fill(nodes, records))
    took = sorted(started(nodes) for _ in range(rounds))
    return {"seconds": took[len(took) // 2]}


async def fill(nodes: Nodes, records: int) -> None:
    """Write records to the metadata log, many in a request."""
    async with await connect(parse_address(nodes[settled(nodes)].controller_address)) as connection:
        many = [f"bench-{group}" for group in range(FILLED_AT_ONCE)]
        for turn in range(records // FILLED_AT_ONCE):
            answer = await connection.send(change(turn, *many), 1)
            assert not any(response.error_code for response in answer.responses), answer


def started(nodes: Nodes) -> float:
    """Kill a follower, start it, and wait for it."""
    leader_id = settled(nodes)
    follower = next(node for node in nodes if node.node_id != leader_id)
    follower.kill()
    end_offset = end_of_log(nodes[leader_id])
    started_ms, begun = time.time() * 1000, time.perf_counter()
    follower.start()
    while not has_all(nodes[leader_id], follower.node_id, end_offset, started_ms):
        if time.perf_counter() - begun > PATIENCE_S:
            raise BrokerError(f"the voter does not catch up:\n{follower.log_tail()}")
        time.sleep(0.01)
    return time.perf_counter() - begun


def end_of_log(leader: Node) -> int:
    described = leader.describe_quorum()
    assert described is not None
    return described.high_watermark


def has_all(leader: Node, node_id: int, end_offset: int, since_ms: float) -> bool:
    """Whether the voter has fetched since a moment, with all records before an offset on its disk."""
    described = leader.describe_quorum()
    return described is not None and any(
        voter.replica_id == node_id
        and voter.log_end_offset >= end_offset
        and voter.last_fetch_timestamp >= since_ms
        for voter in described.current_voters
    )


Measure = Callable[[Nodes], dict[str, float]]


def measured(software: str, measure: Measure) -> dict[str, float]:
    """Measure a quorum of its own."""
    with quorum(software) as nodes:
        return measure(nodes)
