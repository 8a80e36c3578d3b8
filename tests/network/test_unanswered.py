"""Requests that wait: the log tells of one that has no answer for longer than it may take, and what it waits
for.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Later, asks_controller, handles
from pykafka_broker.cli.logging_setup import JsonFormatter
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.sweeping import Sweep
from pykafka_broker.network.unanswered import GRACE_MS, SYNC_GROUP_MS, Knowledge, own_limit_ms, subjects
from pykafka_broker.protocol.fields import ZERO_UUID, blank
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pykafka_broker.protocol.messages.create_topics import CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest
from pykafka_broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.system.repeated_lines import MOST_LINES
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.serving import API_VERSIONS, HEARTBEAT, LIST_GROUPS, Doors, Served, apis, produce_of

PRODUCED = ProduceResponse(responses=[])


async def sweep(served: Served, duration_ms: int) -> None:
    for _ in range(duration_ms // 1_000):
        await served.clock.pass_time(1_000)
        served.connection.check(served.clock.monotonic_ms())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "unanswered" in record.getMessage()]


async def test_a_request_that_waits_for_longer_than_it_says_has_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    # It may take a second by its own words.
    served.send(produce_of(b"x"))
    await sweep(served, 6_000)
    assert lines(caplog) == []

    await sweep(served, 60_000)
    assert lines(caplog) == [
        "Produce v7 with correlation id 1 of client 'tester' on PLAINTEXT-10.0.0.7:50123 is unanswered after "
        "6000 ms, and may take 1000 ms by itself: it waits for partition 't-0'"
    ]
    assert caplog.records[-1].levelname == "WARNING"
    told = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert (told["api"], told["correlation_id"], told["client_id"]) == ("Produce", 1, "tester")
    doors.open(PRODUCED)
    await settle()
    assert served.answered() == [1]


@pytest.mark.parametrize(("known_ms", "overdue_ms"), [(10_000, 15_000), (None, SYNC_GROUP_MS + GRACE_MS)])
async def test_a_member_waits_for_its_assignment_as_long_as_its_group_may_rebalance(
    known_ms: int | None, overdue_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    doors = Doors()

    def wait(request: Any, ctx: Any) -> Any:
        return Later(doors.wait())

    sync_group = handles(SyncGroupRequest, versions="0-5", needs=())(wait)
    served = Served(dispatch=Dispatch([*apis(), sync_group]))
    served.shared.knowledge = Knowledge(rebalance_timeout_ms={"workers": known_ms}.get)
    request = blank(SyncGroupRequest)
    request.group_id = "workers"
    served.transport.feed(served.peer.request(request, version=5))
    await sweep(served, overdue_ms)
    assert lines(caplog) == []
    await sweep(served, 2_000)
    [line] = lines(caplog)
    assert line.endswith(f"may take {overdue_ms - GRACE_MS} ms by itself: it waits for group 'workers'")


async def test_what_a_handler_waits_for_that_lets_no_other_request_start_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors()

    async def beat(request: Any, ctx: Any) -> Any:
        return await doors.wait()

    served = Served(heartbeat=beat)
    served.send(HEARTBEAT, API_VERSIONS)
    await sweep(served, 6_000)
    [line] = lines(caplog)
    assert line.startswith("Heartbeat v4 with correlation id 1 of client 'tester' on ")
    assert line.endswith(" is unanswered after 5000 ms: it waits for group 'g'")


async def test_a_process_that_stood_still_has_one_line_and_its_requests_have_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each parked request of a broker that was stopped with SIGSTOP had a line, and peers were cut off."""
    clock, doors = VirtualClock(), Doors()
    shared = Shared(clock)
    waiting = [
        Served(clock, shared=shared, produce=lambda request, ctx: Later(doors.wait())) for _ in range(3)
    ]
    sending = Served(clock, shared=shared)
    for served in waiting:
        served.send(produce_of(b"x"))
    sending.transport.feed(sending.peer.request(API_VERSIONS)[:5])
    Sweep(shared, DescriptorReserve()).start()
    await clock.pass_time(2_500)

    for _ in range(2):
        clock.stand_still(3_600_000)
        await clock.pass_time(1_500)
    assert not any(served.transport.aborted for served in (*waiting, sending))
    assert caplog.messages == [
        f"This process stood still for {seconds} s: it was stopped, or something kept its "
        "event loop from running. Deadlines of requests and peers do not count that time"
        for seconds in ("3,599", "3,599")
    ]
    assert lines(caplog) == []

    # These requests are stuck, whatever was before.
    await clock.pass_time(2_000)
    [line] = lines(caplog)
    assert "is unanswered after 6000 ms, and may take 1000 ms by itself" in line
    await clock.pass_time(30_000)
    assert sending.transport.aborted


async def test_each_request_has_its_own_time(caplog: pytest.LogCaptureFixture) -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    for _ in range(10):
        served.send(produce_of(b"x"))
        await sweep(served, 5_000)
        doors.open(PRODUCED)
        await settle()
    assert lines(caplog) == []


@pytest.mark.parametrize("records", [b"x", bytes(200_000)], ids=["whole", "read in part"])
async def test_a_request_held_back_by_a_throttle_says_so(
    records: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(produce=lambda request, ctx: PRODUCED)
    served.connection.throttle(60_000)
    served.transport.offer(served.peer.request(produce_of(records)))
    await sweep(served, 8_000)
    [line] = lines(caplog)
    assert line.startswith("Produce v7 with correlation id 1 of client 'tester' on ")
    assert "it waits for the throttle of its client, which ends in 5" in line


async def test_a_request_behind_answers_that_are_not_read_says_so(caplog: pytest.LogCaptureFixture) -> None:
    served = Served()
    served.connection.pause_writing()
    served.send(API_VERSIONS)
    await sweep(served, 7_000)
    [line] = lines(caplog)
    assert line.endswith("it waits for its client, which has not read earlier answers")


async def test_the_time_of_a_request_goes_on_when_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.connection.throttle(4_000)
    served.send(produce_of(b"x"))
    await sweep(served, 4_000)
    assert len(doors.waiting) == 1
    await sweep(served, 3_000)
    assert len(lines(caplog)) == 1


async def test_a_connection_that_closes_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.send(produce_of(b"x"))
    await sweep(served, 1_000)
    served.transport.closing = True
    await sweep(served, 30_000)
    assert lines(caplog) == []


async def test_many_of_one_host_that_wait_have_their_lines_one_after_the_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors()
    first = Served(produce=lambda request, ctx: Later(doors.wait()))
    others = [
        Served(clock=first.clock, shared=first.shared, produce=lambda request, ctx: Later(doors.wait()))
        for _ in range(20)
    ]
    for number, served in enumerate((first, *others)):
        served.send(*[API_VERSIONS] * number, produce_of(b"x"))

    def sweep_all(duration_ms: int) -> list[int]:
        """The correlation ids of the requests that are told of."""
        caplog.clear()
        for _ in range(duration_ms // 1_000):
            first.clock.advance(1_000)
            for served in (first, *others):
                served.connection.check(first.clock.monotonic_ms())
        return [int(line.split("correlation id ")[1].split()[0]) for line in lines(caplog)]

    assert sweep_all(7_000) == [1]
    assert sweep_all(10_000) == [2]
    assert "(20 more of these since the last such line)" in lines(caplog)[0]
    # One that is answered meanwhile has nothing to tell any more.
    doors.open(PRODUCED, index=2)
    await settle()
    assert sweep_all(10_000) == [4]
    assert sweep_all(180_000) == list(range(5, 22))


async def test_peers_at_many_addresses_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    shared = Shared(VirtualClock())

    def misbehaves(number: int, kind: str) -> None:
        connection = SimpleNamespace(peer_host=f"10.0.{number >> 8}.{number & 255}", log_fields={})
        shared.faults.of_peer(connection, kind, f"{kind} {number}")

    for number in range(2_000):
        misbehaves(number, "protocol")
    misbehaves(0, "slow")
    assert (len(caplog.messages), caplog.messages[-1][-6:]) == (MOST_LINES + 1, "slow 0")


async def test_requests_on_which_the_controller_decides_wait_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors()

    async def decide(request: Any, ctx: Any) -> Any:
        return await doors.wait()

    api = asks_controller(handles(ListGroupsRequest, versions="0-5", needs=())(decide))
    served = Served(dispatch=Dispatch([*apis(), api]))
    served.send(LIST_GROUPS)
    await sweep(served, 6_000)
    [line] = lines(caplog)
    assert line.endswith("it waits for the active controller")


def test_each_handler_that_asks_the_controller_of_another_node_declares_it() -> None:
    ways = ("decided", "AlteringApi")
    modules = {api.key: sys.modules[api.handle.__module__] for api in APIS}
    asking = {key for key, module in modules.items() if any(hasattr(module, way) for way in ways)}
    assert asking == {api.key for api in APIS if api.asks_controller and not api.forwarded}
    assert len(asking) == 5


@pytest.mark.parametrize(
    ("request_class", "values", "limit_ms"),
    [
        (FetchRequest, {"max_wait_ms": 500}, 500),
        (ProduceRequest, {"timeout_ms": 30_000}, 30_000),
        (ProduceRequest, {"timeout_ms": -1}, 0),
        (CreateTopicsRequest, {"timeout_ms": 60_000}, 60_000),
        (JoinGroupRequest, {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}, 300_000),
        (JoinGroupRequest, {"session_timeout_ms": 45_000}, 45_000),
        (SyncGroupRequest, {}, SYNC_GROUP_MS),
        (InitProducerIdRequest, {"transaction_timeout_ms": 60_000}, 0),
        (TxnOffsetCommitRequest, {}, 0),
        (EnvelopeRequest, {}, None),
    ],
)
def test_how_long_an_answer_may_take_the_request_says(
    request_class: type[Any], values: dict[str, int], limit_ms: int | None
) -> None:
    request = blank(request_class)
    for name, value in values.items():
        setattr(request, name, value)
    assert own_limit_ms(request) == limit_ms
    assert GRACE_MS == 5_000


def test_a_member_that_joins_waits_for_the_slowest_of_its_group() -> None:
    request = blank(JoinGroupRequest)
    request.rebalance_timeout_ms = 60_000
    assert own_limit_ms(request, Knowledge(rebalance_timeout_ms=lambda group_id: 300_000)) == 300_000


def fetch_of(topic: str, topic_id: bytes, partitions: int) -> FetchRequest:
    of_topic = [
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1)
        for number in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=of_topic)],
    )


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (fetch_of("orders", ZERO_UUID, 1), "partition 'orders-0'"),
        (
            fetch_of("orders", ZERO_UUID, 5),
            "partition 'orders-0', partition 'orders-1', partition 'orders-2' and 2 more",
        ),
        (fetch_of("", bytes(15) + b"\5", 1), "partition 'AAAAAAAAAAAAAAAAAAAABQ-0'"),
        (fetch_of("orders", ZERO_UUID, 0), "topic 'orders'"),
        (FetchRequest(max_wait_ms=0, min_bytes=1, topics=[]), ""),
        (FetchRequest(max_wait_ms=0, min_bytes=1, topics=[], session_id=7), "fetch session 7"),
        (
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id="t\n",
                        producer_id=1,
                        producer_epoch=0,
                        topics=[AddPartitionsToTxnTopic(name="orders", partitions=[3])],
                    )
                ]
            ),
            r"transaction 't\n', partition 'orders-3'",
        ),
        (DescribeGroupsRequest(groups=["a", "b" * 101]), f"group 'a', group '{'b' * 100}'..."),
    ],
)
def test_what_a_request_is_about(request_: object, named: str) -> None:
    assert subjects(request_) == named
