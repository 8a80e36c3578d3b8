"""Fetch (1) on listeners of controllers: observers copy the metadata log."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pykafka_broker.apis.fetch_from_controller import fetch_from_controller
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import Current, Fetch, FetchAnswer, Request
from pykafka_broker.raft.wire import fetch
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of


async def test_an_observer_copies_the_log_and_has_the_same_metadata() -> None:
    home = combined_home()
    async with home.running() as client, await User.connect(controller_address(home.broker)) as user:
        await client.create_topic("orders", partitions=3)
        observer = await observer_of(home, user)
        answer = await observer.fetch()
        assert (answer.current.leader_id, answer.high_watermark) == (1, observer.offset)
        own = home.broker.node.image
        assert observer.loader.image.topics == own.topics
        assert observer.loader.image.offset == own.offset


async def test_a_fetch_at_the_end_waits_for_the_next_record() -> None:
    home = combined_home()
    async with home.running() as client, await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        await observer.fetch()
        waiting = asyncio.ensure_future(observer.fetch(max_wait_ms=60_000))
        await client.create_topic("orders")
        answer = await waiting
        assert [len(batch.control) for batch in answer.batches] == [0]
        assert "orders" in observer.loader.image.topics


async def test_a_fetch_that_is_not_of_this_log_is_told_where_it_diverges() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        await observer.fetch()
        asked = Fetch(observer.epoch, OBSERVER, observer.offset + 100, observer.last_epoch, 0)
        answer = await observer.ask(asked)
        assert answer.diverging == (observer.last_epoch, observer.offset)
        wrong = await observer.ask(asked._replace(offset=-1))
        assert wrong.error is ErrorCode.INVALID_REQUEST


class DeposedWhileItReads:
    """The quorum of a leader that another one follows before the records of its answer have been read."""

    current = Current(5, 1)

    async def request(self, request: Request) -> FetchAnswer:
        return FetchAnswer(ErrorCode.NONE, self.current, high_watermark=3, read_from=3)

    async def read(self, offset: int, max_bytes: int) -> bytes:
        self.current = Current(6, 2)
        return b"records of the next leader"


async def test_records_that_are_read_when_another_replica_leads_are_not_sent() -> None:
    noted = []
    node = SimpleNamespace(
        metadata=SimpleNamespace(image=SimpleNamespace(cluster_id="ours")),
        quorum=DeposedWhileItReads(),
        connections=SimpleNamespace(note=lambda *seen: noted.append(seen)),
    )
    connection = SimpleNamespace(listener_name="CONTROLLER")
    context: Any = SimpleNamespace(node=node, connection=connection, version=18)
    asked = fetch.request(Fetch(5, OBSERVER, 3, 4, 0), Scope("ours"), 1 << 20)

    response = await fetch_from_controller.handle(asked, context)

    answer = fetch.read_response(response, Scope("ours"))
    assert (answer.current, answer.batches) == (Current(5, 1, answer.current.endpoints), ())
    assert noted == [(OBSERVER.node_id, connection)]


async def test_a_replica_of_another_cluster_is_refused() -> None:
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as user:
        observer = await observer_of(home, user)
        asked = Fetch(observer.epoch, OBSERVER, 0, 0, 0)
        refused = await user.send(fetch.request(asked, Scope("another"), 1), 18)
        assert (refused.error_code, refused.responses) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
