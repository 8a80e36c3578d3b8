"""The deadlines of one connection, as the sweep sees them."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.api import Later
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from tests.support.serving import API_VERSIONS, LIST_GROUPS, Doors, Served, produce_of

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
