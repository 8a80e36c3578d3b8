"""Clients with a quota: what they are answered, and when their next request is served.

Time stands still unless a test moves it. The window is ten whole seconds: of a rate of 1,000 a second 10,000
may be used at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import fetch as fetching
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User, fetch_request
from tests.apis.asking import batch, producing_to
from tests.apis.conftest import OVERRIDES
from tests.apis.quotas import Names, set_quotas

APP: Names = {"client_id": "app"}
WINDOW_BYTES = 10_000


@pytest.fixture
async def app(home: Home, user: User) -> AsyncIterator[User]:
    """A client whose id is "app"; `user` sets its quotas."""
    async with await User.connect(home.broker.bootstrap_servers, "app") as app:
        yield app


async def write(client: User, size: int, client_id: str = "app") -> tuple[int, int]:
    """Write a record; the bytes of the request and the throttle time of its answer."""
    request = producing_to("t", batch(b"x" * size))
    answer: producing.ProduceResponse = await client.send(request, 12)
    return len(request_frame(request, 12, 1, client_id)) - 4, answer.throttle_time_ms


async def test_a_producer_over_its_quota_is_told_how_long_to_wait(user: User, app: User) -> None:
    await user.create_topic("t")
    await set_quotas(user, APP, producer_byte_rate=1_000.0)

    first, throttle_ms = await write(app, 8_000)
    assert (first < WINDOW_BYTES, throttle_ms) == (True, 0)
    second, throttle_ms = await write(app, 8_000)
    assert throttle_ms == first + second - WINDOW_BYTES
    assert (await write(user, 100_000))[1] == 0


def from_start(session_id: int = 0, epoch: int = -1) -> fetching.FetchRequest:
    request = fetch_request("t")
    request.session_id, request.session_epoch = session_id, epoch
    if epoch > 0:
        request.topics = []
    return request


async def test_a_consumer_over_its_quota_gets_an_empty_answer_and_the_records_when_it_has_waited(
    home: Home, user: User, app: User
) -> None:
    await user.create_topic("t")
    for _ in range(4):
        await user.produce("t", b"x" * 3_000)
    await set_quotas(user, APP, consumer_byte_rate=1_000.0)

    first = await app.send(from_start(), 12)
    assert len(first.responses[0].partitions[0].records) > 9_000
    second = await app.send(from_start(), 12)
    assert second == fetching.FetchResponse(
        throttle_time_ms=second.throttle_time_ms, error_code=0, session_id=0, responses=[]
    )
    assert 8_000 < second.throttle_time_ms < 10_000
    await home.clock.pass_time(12_000)
    assert await app.send(from_start(), 12) == first


async def test_a_session_forgets_nothing_of_what_a_waiting_consumer_was_not_given(
    home: Home, user: User, app: User
) -> None:
    await user.create_topic("t")
    await set_quotas(user, APP, consumer_byte_rate=1_000.0)
    opened = await app.send(from_start(epoch=0), 12)
    assert (opened.session_id != 0, opened.throttle_time_ms) == (True, 0)
    await user.produce("t", b"x" * 8_000)
    session = opened.session_id
    first = await app.send(from_start(session, 1), 12)
    assert len(first.responses[0].partitions[0].records) > 8_000

    empty = await app.send(from_start(session, 2), 12)
    assert (empty.error_code, empty.session_id, empty.responses) == (0, session, [])
    await home.clock.pass_time(empty.throttle_time_ms + 12_000)
    again = await app.send(from_start(session, 3), 12)
    assert (again.throttle_time_ms, again.responses) == (0, first.responses)


async def test_a_full_fetch_that_has_to_wait_opens_no_session(user: User, app: User) -> None:
    await user.create_topic("t")
    await user.produce("t", b"x" * 8_000)
    await set_quotas(user, APP, consumer_byte_rate=1_000.0)
    await app.send(from_start(), 12)

    answer = await app.send(from_start(epoch=0), 12)

    assert answer.throttle_time_ms > 0
    assert (answer.session_id, answer.responses) == (0, [])


async def test_the_answer_to_a_consumer_is_no_larger_than_what_its_quota_lets_through(
    user: User, app: User
) -> None:
    await user.create_topic("t")
    for _ in range(30):
        await user.produce("t", b"x" * 1_000)
    await set_quotas(user, APP, consumer_byte_rate=1_000.0)

    answer = await app.send(from_start(), 12)

    assert answer.throttle_time_ms == 0
    assert 8_000 < len(answer.responses[0].partitions[0].records) < WINDOW_BYTES


async def test_processing_time_is_a_quota_too(user: User, app: User) -> None:
    await set_quotas(user, APP, request_percentage=1e-9)

    # Every request takes more than the tenth of a nanosecond that a window has room for.
    assert (await app.send(ApiVersionsRequest(), 1)).throttle_time_ms == 1_000
    assert (await user.send(ApiVersionsRequest(), 1)).throttle_time_ms == 0


async def create(client: User, name: str, partitions: int, version: int = 7) -> Any:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[]
    )
    answer = await client.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version)
    return answer.topics[0].error_code, answer.throttle_time_ms


async def test_created_partitions_are_a_quota_of_tokens(home: Home, user: User, app: User) -> None:
    await set_quotas(user, APP, controller_mutation_rate=1.0)

    assert await create(app, "a", 14) == (0, 0)
    refused = create(app, "b", 1)
    assert await refused == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 3_000)
    await home.clock.pass_time(3_000)
    assert await create(app, "b", 1) == (0, 0)


async def test_versions_that_know_no_refusal_create_partitions_and_tell_the_wait(
    user: User, app: User
) -> None:
    await set_quotas(user, APP, controller_mutation_rate=1.0)

    assert await create(app, "a", 14, version=5) == (0, 3_000)


async def test_quotas_that_are_removed_are_in_force_no_more(user: User, app: User) -> None:
    await user.create_topic("t")
    await set_quotas(user, APP, producer_byte_rate=1.0)
    await set_quotas(user, APP, producer_byte_rate=None)

    assert (await write(app, 8_000))[1] == 0


async def test_quotas_are_in_force_after_a_start(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("t")
        await set_quotas(user, APP, producer_byte_rate=1_000.0)
    async with home.running(), await User.connect(home.broker.bootstrap_servers, "app") as app:
        assert (await write(app, 12_000))[1] > 0


async def test_the_length_of_the_window_is_configured(home: Home) -> None:
    home.overrides.update({"quota.window.num": "3", "quota.window.size.seconds": "10"})
    async with home.running() as user:
        await user.create_topic("t")
        await set_quotas(user, {"client_id": "test-client"}, producer_byte_rate=1_000.0)
        size, throttle_ms = await write(user, 30_000, "test-client")
        assert throttle_ms == size - 20_000


async def as_producer(user: User, app: User) -> int:
    await set_quotas(user, APP, producer_byte_rate=1_000.0)
    return (await write(app, 12_000))[1]


async def as_consumer(user: User, app: User) -> int:
    for _ in range(4):
        await user.produce("t", b"x" * 3_000)
    await set_quotas(user, APP, consumer_byte_rate=1_000.0)
    await app.send(from_start(), 12)
    return int((await app.send(from_start(), 12)).throttle_time_ms)


async def by_processing_time(user: User, app: User) -> int:
    await set_quotas(user, APP, request_percentage=1e-9)
    return int((await app.send(ApiVersionsRequest(), 1)).throttle_time_ms)


async def by_creating_topics(user: User, app: User) -> int:
    await set_quotas(user, APP, controller_mutation_rate=1.0)
    await create(app, "a", 14)
    return int((await create(app, "b", 1))[1])


@pytest.mark.parametrize("over_quota", [as_producer, as_consumer, by_processing_time, by_creating_topics])
async def test_a_client_is_served_again_though_timers_come_early(
    over_quota: Callable[[User, User], Awaitable[int]],
) -> None:
    home = Home(OVERRIDES, clock=VirtualClock(early_ms=1))
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers, "app") as app:
        await user.create_topic("t")
        throttle_ms = await over_quota(user, app)
        assert throttle_ms > 0

        next_one = asyncio.ensure_future(app.send(ApiVersionsRequest(), 0))
        # What another client is answered was read after the request that waits.
        await user.send(ApiVersionsRequest(), 0)
        await home.clock.pass_time(throttle_ms - 1)
        await user.send(ApiVersionsRequest(), 0)
        assert not next_one.done()
        await home.clock.pass_time(1)
        await until(next_one.done)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", None])
async def test_connections_of_an_address_come_as_fast_as_its_quota_allows(
    home: Home, user: User, host: str | None
) -> None:
    await set_quotas(user, {"ip": host}, connection_creation_rate=1.0)
    rates = home.broker.node.listeners.acceptor.address_rates
    await until(lambda: rates.is_active)
    host_name, _, port = home.broker.bootstrap_servers.rpartition(":")
    for _ in range(10):
        async with await User.connect(home.broker.bootstrap_servers) as client:
            await client.send(ApiVersionsRequest(), 0)

    reader, writer = await asyncio.open_connection(host_name, int(port))
    await until(lambda: home.broker.node.listeners.shared.counters.connections_rejected == 1)
    await home.clock.pass_time(999)
    assert not reader.at_eof()
    await home.clock.pass_time(1)
    assert await reader.read() == b""
    writer.close()
