"""Connections to other brokers: opened on demand, kept, and given up with the broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.image import BrokerRegistration, ClusterImage, RegisteredEndpoint
from pykafka_broker.coordinator import kept_connections
from pykafka_broker.coordinator.kept_connections import ConnectionSettings, KeptConnections
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock, settle

BROKERS = "BETWEEN"


def broker(broker_id: int, port: int = 9092, epoch: int = 1, *, fenced: bool = False) -> BrokerRegistration:
    listeners = {BROKERS: RegisteredEndpoint("host", port), "CLIENTS": RegisteredEndpoint("clients", port)}
    return BrokerRegistration(broker_id, epoch, bytes(16), listeners, fenced=fenced)


class Wire:
    """A connection whose other side is the test."""

    def __init__(self, address: Address, clock: VirtualClock) -> None:
        self.address = address
        self.is_closed = False
        #: Requests that are not answered yet.
        self.asked: dict[object, asyncio.Future[Any]] = {}
        self._clock = clock

    def newest_version(self, request: object) -> int:
        if request == "unknown":
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        return 3

    async def send(self, request: object, version: int, *, timeout_ms: int) -> Any:
        assert version == 3
        response = self.asked[request] = asyncio.get_running_loop().create_future()
        late = self._clock.call_at(
            self._clock.monotonic_ms() + timeout_ms, lambda: response.set_exception(TimeoutError("late"))
        )
        try:
            return await response
        finally:
            late.cancel()

    def lose(self, error: Exception) -> None:
        self.is_closed = True
        for response in self.asked.values():
            if not response.done():
                response.set_exception(error)

    async def close(self) -> None:
        self.lose(ConnectionError("closed here"))


class Cluster:
    """Brokers 1 and 2 as broker 0 sees them, and the connections to them."""

    def __init__(self, idle_ms: int = 600_000) -> None:
        self.image = ClusterImage(brokers={1: broker(1), 2: broker(2, 9093)})
        self.clock = VirtualClock()
        self.wires: list[Wire] = []
        #: Set while connections are to wait, or to fail.
        self.holds: asyncio.Event | None = None
        self.refuses: Exception | None = None
        self.connections = KeptConnections(
            self, self._connect, self.clock, ConnectionSettings(BROKERS, 30_000, 10_000, idle_ms)
        )

    async def _connect(self, address: Address, timeout_ms: int) -> Wire:
        assert timeout_ms == 10_000
        if self.holds is not None:
            await self.holds.wait()
        if self.refuses is not None:
            raise self.refuses
        self.wires.append(Wire(address, self.clock))
        return self.wires[-1]

    def publish(self, *brokers: BrokerRegistration) -> None:
        old, self.image = self.image, ClusterImage(brokers={each.broker_id: each for each in brokers})
        self.connections.on_image(old, self.image)

    async def asking(self, broker_id: int, *requests: str) -> list[asyncio.Task[Any]]:
        asked = [asyncio.ensure_future(self.connections.ask(broker_id, each)) for each in requests]
        await settle()
        return asked


async def failure(asking: asyncio.Future[Any]) -> Exception:
    with pytest.raises(Exception) as caught:
        await asking
    return caught.value


async def test_callers_share_one_connection_to_the_listener_of_brokers() -> None:
    cluster = Cluster()
    first, second = await cluster.asking(1, "one", "two")
    [wire] = cluster.wires
    assert wire.address == Address("host", 9092)

    wire.asked["two"].set_result(2)
    wire.asked["one"].set_result(1)

    assert (await first, await second) == (1, 2)
    [third] = await cluster.asking(1, "three")
    wire.asked["three"].set_result(3)
    assert await third == 3
    assert len(cluster.wires) == 1


async def test_each_broker_has_a_connection_of_its_own() -> None:
    cluster = Cluster()
    await cluster.asking(1, "one")
    await cluster.asking(2, "two")
    assert [wire.address.port for wire in cluster.wires] == [9092, 9093]
    await cluster.connections.close()


async def test_a_broker_that_is_fenced_or_unknown_is_not_reachable() -> None:
    cluster = Cluster()
    cluster.publish(broker(1, fenced=True))
    assert [cluster.connections.is_reachable(broker_id) for broker_id in (1, 2)] == [False, False]
    for broker_id in (1, 2):
        [asking] = await cluster.asking(broker_id, "one")
        assert isinstance(await failure(asking), ConnectionError)
    assert not cluster.wires

    cluster.publish(broker(1))
    assert cluster.connections.is_reachable(1)


@pytest.mark.parametrize(
    "brokers",
    [(broker(1, fenced=True),), (), (broker(1, epoch=2),), (broker(1, port=9999),)],
    ids=["fenced", "unregistered", "started again", "moved"],
)
async def test_callers_do_not_wait_for_a_broker_that_is_gone(brokers: tuple[BrokerRegistration, ...]) -> None:
    cluster = Cluster()
    [asking] = await cluster.asking(1, "one")

    cluster.publish(*brokers)

    assert isinstance(await failure(asking), ConnectionError)
    assert cluster.wires[0].is_closed


async def test_a_change_of_another_broker_disturbs_no_caller() -> None:
    cluster = Cluster()
    [asking] = await cluster.asking(1, "one")
    cluster.publish(broker(1), broker(2, fenced=True))
    cluster.wires[0].asked["one"].set_result(1)
    assert await asking == 1


async def test_a_connection_that_has_ended_is_opened_anew() -> None:
    cluster = Cluster()
    [asking] = await cluster.asking(1, "one")
    cluster.wires[0].lose(ConnectionError("reset"))
    assert str(await failure(asking)) == "reset"

    [again] = await cluster.asking(1, "two")
    cluster.wires[1].asked["two"].set_result(2)
    assert await again == 2

    # The other side closes it while nothing is asked.
    cluster.wires[1].is_closed = True
    [again] = await cluster.asking(1, "three")
    cluster.wires[2].asked["three"].set_result(3)
    assert await again == 3


async def test_a_request_without_an_answer_in_time_costs_the_connection() -> None:
    cluster = Cluster()
    [asking] = await cluster.asking(1, "one")
    await cluster.clock.pass_time(10_000)
    [other] = await cluster.asking(1, "two")

    await cluster.clock.pass_time(20_000)

    assert isinstance(await failure(asking), TimeoutError)
    assert isinstance(await failure(other), ConnectionError)
    assert cluster.wires[0].is_closed


@pytest.mark.parametrize(
    "refusal",
    [
        ConnectionRefusedError("nothing there"),
        KafkaError(ErrorCode.UNSUPPORTED_VERSION),
        UnicodeError("no host name"),
    ],
)
async def test_all_callers_learn_that_there_is_no_connection_and_the_next_tries_again(
    refusal: Exception,
) -> None:
    cluster = Cluster()
    cluster.holds, cluster.refuses = asyncio.Event(), refusal
    first, second = await cluster.asking(1, "one", "two")
    cluster.holds.set()
    assert isinstance(await failure(first), ConnectionError)
    assert isinstance(await failure(second), ConnectionError)

    cluster.refuses = None
    [again] = await cluster.asking(1, "three")
    cluster.wires[0].asked["three"].set_result(3)
    assert await again == 3


async def test_what_this_broker_cannot_be_asked_costs_no_connection() -> None:
    cluster = Cluster()
    [unknown] = await cluster.asking(1, "unknown")
    too_new = asyncio.ensure_future(cluster.connections.ask(1, "one", lowest_version=4))
    for asking in (unknown, too_new):
        error = await failure(asking)
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.UNSUPPORTED_VERSION
    assert not cluster.wires[0].is_closed


async def test_a_caller_that_goes_away_leaves_the_connection_to_the_others() -> None:
    cluster = Cluster()
    cluster.holds = asyncio.Event()
    first, second = await cluster.asking(1, "one", "two")
    first.cancel()
    cluster.holds.set()
    await settle()
    assert list(cluster.wires[0].asked) == ["two"]
    cluster.wires[0].asked["two"].set_result(2)
    assert await second == 2


async def test_an_unused_connection_is_closed_after_a_while() -> None:
    cluster = Cluster(idle_ms=1_000)
    [asking] = await cluster.asking(1, "one")
    await cluster.clock.pass_time(5_000)
    [wire] = cluster.wires
    wire.asked["one"].set_result(1)
    assert await asking == 1
    await cluster.clock.pass_time(999)
    assert not cluster.wires[0].is_closed

    await cluster.clock.pass_time(1_001)

    assert wire.is_closed
    assert not cluster.clock.pending_timers


async def test_a_connection_is_kept_for_good_where_none_is_idle() -> None:
    cluster = Cluster(idle_ms=-1)
    [asking] = await cluster.asking(1, "one")
    cluster.wires[0].asked["one"].set_result(1)
    await asking
    await cluster.clock.pass_time(10_000_000)
    assert not cluster.wires[0].is_closed


async def test_so_many_callers_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "MAX_CALLERS", 2)
    cluster = Cluster()
    first, second, third = await cluster.asking(1, "one", "two", "three")
    assert isinstance(await failure(third), ConnectionError)
    [other] = await cluster.asking(2, "four")
    for wire, request in ((0, "one"), (0, "two"), (1, "four")):
        cluster.wires[wire].asked[request].set_result(request)
    assert [await each for each in (first, second, other)] == ["one", "two", "four"]


async def test_a_stop_ends_what_waits_and_what_is_being_opened() -> None:
    cluster = Cluster()
    [waiting] = await cluster.asking(1, "one")
    cluster.holds = asyncio.Event()
    [opening] = await cluster.asking(2, "two")

    await cluster.connections.close()

    assert str(await failure(waiting)) == "closed here"
    assert str(await failure(opening)) == "This node is stopping."
    [late] = await cluster.asking(1, "three")
    assert str(await failure(late)) == "This node is stopping."
    assert len(cluster.wires) == 1
