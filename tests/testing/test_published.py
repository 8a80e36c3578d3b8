"""What `pykafka_broker.testing` offers to tests of other programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pykafka_broker import testing
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.testing import Home, PykafkaBroker, User
from pykafka_broker.testing.processes import environment


def test_dir_lists_what_is_published_and_everything_listed_is_there() -> None:
    assert dir(testing) == sorted(testing.__all__)
    assert [name for name in testing.__all__ if getattr(testing, name).__name__ != name] == []


def test_importing_it_costs_neither_a_broker_nor_pytest() -> None:
    program = "import sys, pykafka_broker.testing; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(run.stdout.split())

    assert {"pytest", "asyncio", "hypothesis", "pykafka_broker.broker"} & imported == set()


async def test_a_record_outlives_a_crash_of_a_broker_in_memory() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        crashed = home.killed()

    async with crashed.running() as user:
        assert await user.values("orders") == [b"one"]


async def test_a_broker_as_a_process_keeps_its_address_and_its_records_over_a_restart() -> None:
    with PykafkaBroker() as broker:
        address = broker.address
        async with await User.connect(address) as user:
            await user.create_topic("orders")
            await user.produce("orders", b"one")
        broker.restart()
        async with await User.connect(address) as user:
            assert await user.values("orders") == [b"one"]


async def test_records_from_an_offset_on_leave_out_those_before_it_in_the_same_batch() -> None:
    async with Home().running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one", b"two", b"three")

        assert [record.offset for record in await user.records("orders", offset=1)] == [1, 2]
        deletion = DeleteRecordsTopic(
            name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
        )
        await user.send(DeleteRecordsRequest(topics=[deletion], timeout_ms=10_000), 2)
        assert await user.values("orders") == [b"three"]


def test_a_broker_as_a_process_is_configured_by_its_properties_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_NUM_PARTITIONS", "KAFKA_CREATE_TOPICS", "CLUSTER_ID", "KAFKA_LOG4J_LOGGERS", "OTHER"):
        monkeypatch.setenv(name, "of the tests")
    of_tests = [name for name, value in environment().items() if value == "of the tests"]
    assert sorted(of_tests) == ["KAFKA_LOG4J_LOGGERS", "OTHER"]
