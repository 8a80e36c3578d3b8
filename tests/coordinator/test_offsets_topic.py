"""The groups of a running broker and `__consumer_offsets`: made on demand, read at start, tidied by time."""

from __future__ import annotations

import asyncio
import errno

import pytest

from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import heartbeat, join_group, list_groups, sync_group
from pykafka_broker.testing.home import DATA, Home, until
from pykafka_broker.testing.user import User

MINUTE_MS = 60_000
FEW = {"offsets.topic.num.partitions": "4", "connections.max.idle.ms": "-1"}


async def test_a_broker_that_is_only_asked_about_groups_makes_no_topic() -> None:
    home = Home(FEW)
    async with home.running() as user:
        answer = await user.send(list_groups.ListGroupsRequest(), 4)
        assert (answer.error_code, answer.groups) == (0, [])
        assert await user.topics() == {}
        assert not home.files.exists(f"{DATA}/__consumer_offsets-0")
        await user.find_coordinator("readers")
        assert home.files.exists(f"{DATA}/__consumer_offsets-3")


async def test_many_who_look_for_a_coordinator_at_once_find_it() -> None:
    home = Home(FEW)
    async with home.running():
        users = [await User.connect(home.broker.bootstrap_servers) for _ in range(10)]
        await users[0].create_topic("orders")
        await asyncio.gather(*[user.find_coordinator(f"group-{n}") for n, user in enumerate(users)])
        await asyncio.gather(*[user.commit(f"group-{n}", "orders", n) for n, user in enumerate(users)])
        for user in users:
            await user.close()
    async with home.running() as user:
        for number in range(10):
            assert await user.committed(f"group-{number}") == {("orders", 0): number}


async def test_the_last_of_many_commits_survives_a_kill() -> None:
    home = Home({**FEW, "offsets.topic.segment.bytes": str(1 << 20)})
    async with home.running() as user:
        await user.create_topic("orders")
        for offset in range(200):
            await user.commit("readers", "orders", offset)
        after = home.killed()
    async with after.running() as user:
        assert await user.committed("readers") == {("orders", 0): 199}


async def test_a_load_reads_as_much_at_a_time_as_configured() -> None:
    """At least one batch, however large that is."""
    reads: dict[str, int] = {}
    for size in ("1", "1000000"):
        home = Home({**FEW, "offsets.load.buffer.size": size})
        async with home.running() as user:
            await user.create_topic("orders")
            for offset in range(20):
                await user.commit("readers", "orders", offset)
        async with home.running() as user:
            assert await user.committed("readers") == {("orders", 0): 19}
            coordinators = home.broker.node.broker.coordinators
            partition = home.broker.node.broker.replicas.led(
                OFFSETS_TOPIC, coordinators.groups.partition_for("readers")
            )
            assert partition is not None
            batches = coordinators.offsets_topic.batches(partition.log)
            reads[size] = len([each async for each in batches])
    assert reads == {"1": 20, "1000000": 1}


async def test_offsets_of_a_deleted_topic_are_gone_now_and_after_a_restart() -> None:
    home = Home(FEW)
    async with home.running() as user:
        for topic in ("orders", "clicks"):
            await user.create_topic(topic)
            await user.commit("readers", topic, 7)
        await user.delete_topic("orders")
        assert await user.committed("readers") == {("clicks", 0): 7}
        await user.create_topic("orders")
        assert await user.committed("readers") == {("clicks", 0): 7}
    async with home.running() as user:
        assert await user.committed("readers") == {("clicks", 0): 7}


async def test_offsets_expire_by_the_clock_and_stay_expired() -> None:
    home = Home({**FEW, "offsets.retention.minutes": "60"})
    async with home.running() as user:
        for topic in ("orders", "clicks"):
            await user.create_topic(topic)
        await user.commit("readers", "orders", 7)
        await home.pass_time(30 * MINUTE_MS)
        await user.commit("readers", "clicks", 8)
        assert len(await user.committed("readers")) == 2
        await home.pass_time(41 * MINUTE_MS)
        assert await user.committed("readers") == {("clicks", 0): 8}
    async with home.running() as user:
        assert await user.committed("readers") == {("clicks", 0): 8}
        await home.pass_time(31 * MINUTE_MS)
        assert await user.committed("readers") == {}
        answer = await user.send(list_groups.ListGroupsRequest(), 4)
        assert answer.groups == [], "an empty group without offsets is no group"


async def test_a_member_goes_on_after_a_restart() -> None:
    """The group is in the log with its generation: members that heartbeat need not join again."""
    home = Home({**FEW, "group.initial.rebalance.delay.ms": "0"})
    async with home.running() as user:
        await user.find_coordinator("workers")
        protocols = [join_group.JoinGroupRequestProtocol(name="range", metadata=b"m")]
        joining = asyncio.ensure_future(
            user.send(
                join_group.JoinGroupRequest(
                    group_id="workers",
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    member_id="",
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                3,
            )
        )
        await until(lambda: home.clock.advance(1) or joining.done())
        joined = await joining
        assert joined.error_code == 0
        assignment = sync_group.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        synced = await user.send(
            sync_group.SyncGroupRequest(
                group_id="workers",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[assignment],
            ),
            3,
        )
        assert synced.assignment == b"all"
        after = home.killed()
    beat = heartbeat.HeartbeatRequest(
        group_id="workers",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=None,
    )
    async with after.running() as user:
        assert ErrorCode((await user.send(beat, 4)).error_code) == ErrorCode.NONE
        await after.pass_time(31_000)
        assert ErrorCode((await user.send(beat, 4)).error_code) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_partition_that_cannot_be_read_is_one_error_and_the_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home(FEW)
    async with home.running() as user:
        await user.create_topic("orders")
        for number in range(8):
            await user.commit(f"group-{number}", "orders", number)
        partition = home.broker.node.broker.coordinators.groups.partition_for("group-0")
    home.files.fail("pread", errno.EIO, path=f"__consumer_offsets-{partition}/", skip=1, times=-1)
    async with home.running() as user:
        groups = home.broker.node.broker.coordinators.groups
        served = [n for n in range(8) if groups.partition_for(f"group-{n}") != partition]
        for number in served:
            assert await user.committed(f"group-{number}") == {("orders", 0): number}
        assert served
        topic = home.broker.node.broker.coordinators.offsets_topic
        assert topic.partitions_by_state == {"active": 3, "loading": 0, "failed": 1}
    [line] = [record.message for record in caplog.records if "cannot be read" in record.message]
    assert line == f"__consumer_offsets-{partition} cannot be read, what it holds is not served"
