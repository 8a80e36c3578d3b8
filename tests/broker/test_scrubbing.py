"""How often a broker reads old records again, and how fast, is configured in its file or while it runs."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import DATA, Home, until
from pykafka_broker.testing.user import BROKER_RESOURCE, User

KEY = "log.scrub.interval.ms"


async def rounds(home: Home, caplog: pytest.LogCaptureFixture, duration_ms: int) -> int:
    """How many rounds began, and ended, within so much time."""
    caplog.clear()
    for _ in range(duration_ms // 1_000):
        await home.pass_time(1_000)
        await until(lambda: home.broker.node.logs.scrubber._round is None)
    return sum(record.getMessage().startswith("Scrubbed ") for record in caplog.records)


async def a_log_of_closed_segments(user: User) -> None:
    await user.create_topic("orders", internal_segment_bytes="300")
    for number in range(10):
        await user.produce("orders", b"%d" % number + bytes(60))


async def test_the_interval_is_read_from_the_file_and_changed_while_the_broker_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    home = Home({KEY: "-1"})
    async with home.running() as user:
        await a_log_of_closed_segments(user)
        assert await rounds(home, caplog, 100_000) == 0
        await user.alter_broker(log_scrub_interval_ms="10000", log_scrub_io_max_bytes_per_second="1000")
        assert home.broker.node.logs.scrubber.settings == (10_000, 1_000)
        await rounds(home, caplog, 10_000)  # the first one after the start finds all checked
        assert await rounds(home, caplog, 30_000) == 3
        await user.alter_broker(log_scrub_interval_ms=None)
        assert home.broker.node.logs.scrubber.settings == (-1, 1_000)
        assert await rounds(home, caplog, 100_000) == 0


async def test_what_is_out_of_bounds_is_refused() -> None:
    home = Home()
    async with home.running() as user:
        for values in ({"log_scrub_interval_ms": "-2"}, {"log_scrub_io_max_bytes_per_second": "0"}):
            assert await user.try_to_alter(BROKER_RESOURCE, "", **values) == ErrorCode.INVALID_REQUEST
        assert home.broker.node.logs.scrubber.settings == (7 * 86_400_000, 32 << 20)


async def test_the_keys_are_described_where_they_are_set() -> None:
    home = Home({KEY: "5000"})
    async with home.running() as user:
        assert await user.config(BROKER_RESOURCE, "1", KEY) == "5000"
        await user.alter_broker(log_scrub_interval_ms="6000")
        assert await user.config(BROKER_RESOURCE, "1", KEY) == "6000"
    assert home.files.exists(f"{DATA}/.kafka_cleanshutdown")
