"""/explain: what a node has decided, and what its clients wait for, told to those on its machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from pykafka_broker.broker.broker import Broker
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home, until
from tests.broker.test_isr_of_nodes import isr_is
from tests.broker.test_replication_of_nodes import QUICK_FETCHES, agree, create, produce
from tests.metrics.pages import METRICS, Browser
from tests.support.clusters import Cluster


async def explain(broker: Broker, kind: str, name: str) -> dict[str, Any]:
    browser = await Browser.of(broker)
    page = await browser.get(f"/explain?{urlencode({'kind': kind, 'name': name})}", host="localhost:9404")
    await browser.close()
    assert (page.status, page.headers["Content-Type"]) == (200, "application/json"), page
    told: dict[str, Any] = json.loads(page.body)
    return told


@pytest_asyncio.fixture
async def home() -> AsyncIterator[Home]:
    home = Home({"metrics.listeners": METRICS})
    async with home.running():
        yield home


@pytest.mark.parametrize(
    ("host", "query", "status"),
    [
        ("127.0.0.1:9404", "kind=group&name=g", 200),
        ("[::1]:9404", "kind=group&name=g", 200),
        ("rebound.example:9404", "kind=group&name=g", 403),
        ("[", "kind=group&name=g", 403),
        ("localhost", "kind=cluster&name=g", 400),
        ("localhost", "kind=group", 400),
    ],
)
async def test_only_those_who_name_a_loopback_address_are_told(
    home: Home, host: str, query: str, status: int
) -> None:
    browser = await Browser.of(home.broker)
    assert (await browser.get(f"/explain?{query}", host=host)).status == status
    await browser.close()


async def test_a_listener_for_other_machines_does_not_explain() -> None:
    everywhere = "http://0.0.0.0:0"
    home = Home({"metrics.listeners": everywhere})
    async with home.running():
        _, port = home.broker.node.listeners.listeners[everywhere].address
        browser = await Browser.at("127.0.0.1", port)
        page = await browser.get("/explain?kind=group&name=g", host="127.0.0.1")
        assert (page.status, (await browser.get("/health/live")).status) == (403, 200)
        await browser.close()


async def test_an_answer_names_its_cluster_and_its_node(home: Home) -> None:
    told = await explain(home.broker, "group", "unknown")

    assert told == {
        "cluster_id": home.broker.node.image.cluster_id,
        "node_id": 1,
        "now": [],
        "history": [],
    }


async def test_a_group_says_for_which_member_it_waits() -> None:
    home = Home({"metrics.listeners": METRICS, "group.initial.rebalance.delay.ms": "0"})
    async with home.running() as user:
        await user.find_coordinator("g")
        joining = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        member_id = (await user.send(joining, 3)).member_id
        await home.pass_time(7_000)
        [fact] = (await explain(home.broker, "group", "g"))["now"]

    assert fact["text"].startswith(f"The group waits for member {member_id} (127.0.0.1) to assign the ")
    assert "It has sent no heartbeat for 7 s. " in fact["text"]
    assert fact["text"].endswith(" in 3 s, when its session ends (session.timeout.ms=10000).")


async def test_a_parked_fetch_says_what_it_waits_for() -> None:
    home = Home({"metrics.listeners": METRICS})
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        fetching = asyncio.ensure_future(user.fetch("orders", offset=1, max_wait_ms=60_000))
        told: dict[str, Any] = {"now": []}
        while not told["now"]:
            told = await explain(home.broker, "request", "User:ANONYMOUS")
            await asyncio.sleep(0)

        [fact] = told["now"]
        parked = " can be read (fetch.min.bytes) from 1 partition, at most 1 min (fetch.max.wait.ms). "
        assert parked in fact["text"]
        assert fact["text"].endswith("orders-0 has no record from offset 1 on.")
        fetching.cancel()


async def test_a_super_user_is_told_to_be_one() -> None:
    authorizer = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    home = Home({"metrics.listeners": METRICS, **authorizer})
    async with home.running():
        told = [
            (await explain(home.broker, "request", name))["now"]
            for name in ("ANONYMOUS", "User:ANONYMOUS", "alice")
        ]

    text = "User:ANONYMOUS is a super user of node 1: it may do everything, without ACLs."
    fact = {"text": text, "remedy": ""}
    assert told == [[fact], [fact], []]


async def test_a_sequence_that_is_refused_is_told_of_with_its_client() -> None:
    home = Home({"metrics.listeners": METRICS})
    async with home.running() as user:
        await user.create_topic("orders")
        producer_id = await user.new_producer_id()
        for sequence, error in ((0, ErrorCode.NONE), (5, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)):
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            answer = await user.try_to_produce("orders", b"one", **fields)
            assert answer.error_code == error

        [entry] = (await explain(home.broker, "producer", str(producer_id)))["history"]

    sent = f"(producer id {producer_id}, epoch 0, sequence 5)"
    assert f"{sent} with OUT_OF_ORDER_SEQUENCE_NUMBER" in entry["text"]
    assert entry["times"] == 1


async def test_a_partition_under_its_min_isr_and_what_waits_for_it() -> None:
    overrides = {**QUICK_FETCHES, "replica.lag.time.max.ms": "1500", "metrics.listeners": METRICS}
    cluster = Cluster(3, overrides=overrides)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2, 3]], {"min.insync.replicas": "3"})
        async with cluster.user_of(1) as user, cluster.user_of(1) as reader:
            await produce(user, b"one")
            await agree(cluster, 1, 2, 3)
            roles = cluster.broker(2).node.broker.replicas._roles
            [fetchers] = [one for one in roles if isinstance(one, ReplicaFetchers)]
            await fetchers.stop()
            waiting = asyncio.ensure_future(user.try_to_produce("orders", b"two", timeout_ms=60_000))
            leader = cluster.broker(1)
            log = leader.node.logs.get("orders", 0)
            assert log is not None
            await until(lambda: log.state.log_end_offset == 2)
            reading = asyncio.ensure_future(reader.fetch("orders", offset=1, max_wait_ms=60_000))
            reasons = {
                "until the replicas in sync have its records",
                "orders-0 has records up to 2, but those from 1 on are not committed",
                # The other follower has all records, and does not wait for the high watermark.
                "orders-0 has no record from offset 2 on.",
            }
            async with asyncio.timeout(PATIENCE_SECONDS):
                while reasons:
                    told = (await explain(leader, "request", "User:ANONYMOUS"))["now"]
                    reasons = {each for each in reasons if not any(each in fact["text"] for fact in told)}

            await isr_is(cluster, 1, 1, 3)
            async with cluster.user_of(1) as third:
                assert (await third.try_to_produce("orders", b"three", acks=-1)).error_code == (
                    ErrorCode.NOT_ENOUGH_REPLICAS
                )
            found = await explain(leader, "partition", "orders-0")
            for each in (waiting, reading):
                each.cancel()

    assert [fact["text"][:22] for fact in found["now"]] == ["Broker 2 fetched last "]
    lagging, shrunk, refused = (entry["text"] for entry in found["history"])
    assert lagging.startswith("The leader, broker 1, asked for the ISR [1, 3] instead of [1, 2, 3]")
    assert shrunk == "The ISR is [1, 3], without [2]. The leader is broker 1."
    assert "was refused a write with acks=all" in refused
