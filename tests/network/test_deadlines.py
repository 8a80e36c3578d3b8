"""The deadlines of one connection, as the sweep sees them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.api import Later
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.memory import RequestMemory
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.testing.clock import settle
from tests.support.serving import API_VERSIONS, HEARTBEAT, LIST_GROUPS, Doors, Served, produce_of

PRODUCED = ProduceResponse(responses=[])


def sweep(served: Served, duration_ms: int, every_ms: int = 1_000) -> None:
    for _ in range(duration_ms // every_ms):
        served.clock.advance(every_ms)
        served.connection.check(served.clock.monotonic_ms())


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    served = Served(limits=ConnectionLimits(idle_ms=10_000))
    sweep(served, 8_000)
    served.send(API_VERSIONS)
    sweep(served, 9_000)
    assert not served.transport.closing
    sweep(served, 3_000)
    assert served.transport.aborted


async def test_a_negative_idle_limit_means_never() -> None:
    served = Served(limits=ConnectionLimits(idle_ms=-1))
    sweep(served, 3_600_000, every_ms=60_000)
    assert not served.transport.closing


async def test_a_connection_with_a_parked_request_is_not_idle() -> None:
    doors = Doors()
    served = Served(limits=ConnectionLimits(idle_ms=10_000), produce=lambda request, ctx: Later(doors.wait()))
    served.send(produce_of(b"x"))
    sweep(served, 60_000)
    assert not served.transport.closing


async def test_a_request_that_dribbles_in_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    served = Served()
    request = served.peer.request(API_VERSIONS)
    for byte in request[:4]:
        served.transport.feed(bytes([byte]))
        sweep(served, 10_000)
    assert served.transport.aborted
    assert "did not arrive" in caplog.text


async def test_while_memory_is_short_a_peer_that_waits_for_an_answer_is_not_waited_for() -> None:
    """It would hold up all others until its answer, and would have no deadline for the rest of its next
    request.
    """
    doors, memory = Doors(), RequestMemory(100_000)

    async def slow(request: Any, ctx: Any) -> Any:
        return await doors.wait()

    waits = Served(request_memory=memory, heartbeat=slow)
    both = waits.peer.requests(HEARTBEAT, API_VERSIONS)
    waits.transport.feed(both[:-1])
    never_ends, writes = (
        Served(clock=waits.clock, shared=waits.shared, produce=lambda request, ctx: PRODUCED)
        for _ in range(2)
    )
    never_ends.transport.offer((10_000_000).to_bytes(4, "big") + bytes(200_000))
    request = writes.peer.request(produce_of(bytes(50_000)))
    taken = writes.transport.offer(request)
    assert (memory.full, taken < len(request)) == (True, True)

    for _ in range(60):
        waits.clock.advance(1_000)
        for each in (waits, never_ends, writes):
            each.connection.check(waits.clock.monotonic_ms())
        await settle()
        taken += writes.transport.offer(request[taken:])

    assert (never_ends.connection.closed, writes.answered()) == (True, [1])
    doors.open(HeartbeatResponse(error_code=0))
    await settle()
    waits.transport.feed(both[-1:])
    assert waits.answered() == [1, 2]


async def test_a_large_request_on_a_slow_line_has_the_time_it_needs() -> None:
    served = Served(produce=lambda request, ctx: PRODUCED)
    stream = served.peer.request(produce_of(bytes(2_000_000)))
    for start in range(0, len(stream), 20_000):
        served.transport.feed(stream[start : start + 20_000])
        sweep(served, 1_000)
    assert served.answered() == [1]


async def test_one_request_after_the_other_in_pieces_is_not_a_slow_one() -> None:
    served = Served()
    stream = served.peer.requests(*[API_VERSIONS] * 100)
    for start in range(0, len(stream), 40):
        served.transport.feed(stream[start : start + 40])
        sweep(served, 1_000)
    assert len(served.answered()) == 100


async def test_a_peer_that_never_reads_its_answers_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    large = ListGroupsResponse(
        error_code=0,
        groups=[ListedGroup(group_id="g" * 1000, protocol_type="", group_state="") for _ in range(300)],
    )
    served = Served(list_groups=lambda request, ctx: large)
    served.transport.peer_reads = False
    served.send(LIST_GROUPS)
    sweep(served, 40_000)
    served.transport.unsent_bytes -= 1_000
    sweep(served, 59_000)
    before = served.transport.aborted
    sweep(served, 3_000)
    assert (before, served.transport.aborted) == (False, True)
    assert "has not read" in caplog.text
