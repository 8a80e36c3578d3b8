"""Retention as clients see it: what a topic says of itself, changed while the broker runs."""

from __future__ import annotations

from pykafka_broker.testing.clock import NOW
from pykafka_broker.testing.home import DATA, Home, until
from pykafka_broker.testing.user import EARLIEST, TOPIC_RESOURCE, User

SETTINGS = {
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "5000",
}


async def fill(user: User, topic: str) -> None:
    for number in range(10):
        await user.produce(topic, b"%d" % number + bytes(60), timestamp=NOW)


async def starts_at(home: Home, user: User, topic: str, offset: int) -> None:
    """Two looks later the log begins there."""
    await home.pass_time(2_000)
    log = home.broker.node.logs.get(topic, 0)
    assert log is not None
    await until(lambda: log.state.log_start_offset == offset)
    assert await user.offset_for(topic, EARLIEST) == offset


async def test_without_a_cleanup_policy_everything_is_kept_until_there_is_one() -> None:
    home = Home(SETTINGS)
    async with home.running() as user:
        await user.create_topic(
            "orders", cleanup_policy="", retention_ms="1", retention_bytes="1", internal_segment_bytes="300"
        )
        await fill(user, "orders")
        await starts_at(home, user, "orders", 0)
        await home.pass_time(5_000)
        await starts_at(home, user, "orders", 0)
        await user.alter_topic("orders", cleanup_policy="delete")
        await starts_at(home, user, "orders", 10)


async def test_retention_is_changed_for_one_topic_and_for_all_others_while_the_broker_runs() -> None:
    home = Home(SETTINGS)
    async with home.running() as user:
        for topic in ("own", "default"):
            await user.create_topic(topic, internal_segment_bytes="300")
            await fill(user, topic)
        await user.alter_topic("own", retention_ms="-1", retention_bytes="-1")
        await user.alter_broker(log_retention_ms="1")
        await starts_at(home, user, "default", 10)
        await starts_at(home, user, "own", 0)
        await user.alter_topic("own", retention_bytes="600")
        await starts_at(home, user, "own", 4)
        await user.alter_topic("own", retention_ms=None)
        await starts_at(home, user, "own", 10)


async def test_the_files_of_what_has_expired_stay_for_readers_for_a_while() -> None:
    home = Home(SETTINGS)
    async with home.running() as user:
        await user.create_topic("orders", internal_segment_bytes="300", retention_ms="1")
        await fill(user, "orders")
        await starts_at(home, user, "orders", 10)

        def set_aside() -> list[str]:
            return [
                name
                for name in home.files.inodes
                if name.startswith(f"{DATA}/orders-0/") and name.endswith(".log.deleted")
            ]

        await until(lambda: len(set_aside()) == 5)
        await home.pass_time(2_000)
        assert len(set_aside()) == 5
        await home.pass_time(4_000)
        assert set_aside() == []


async def test_retention_of_tiered_segments_is_accepted_and_changes_nothing_without_tiers() -> None:
    home = Home({**SETTINGS, "log.local.retention.ms": "1", "log.local.retention.bytes": "1"})
    async with home.running() as user:
        await user.create_topic("orders", internal_segment_bytes="300", local_retention_ms="1")
        await user.alter_topic("orders", local_retention_bytes="1")
        assert await user.config(TOPIC_RESOURCE, "orders", "local.retention.ms") == "1"
        await fill(user, "orders")
        await starts_at(home, user, "orders", 0)
