"""`log repair --accept-loss`: a coordinator whose partition has lost records goes by what is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import init_producer_id as initialising
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.cli.conftest import Result, run_command

COORDINATORS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


def home_in(folder: Path) -> Home:
    return Home(COORDINATORS, files=OsFileSystem(), data_dir=str(folder))


async def repair(*arguments: object) -> Result:
    return await asyncio.to_thread(run_command, "log", "repair", *map(str, arguments))


def spoil_batch(partition: Path, number: int) -> int:
    """Flip a bit in a batch of a log; the offset that is lost."""
    path = partition / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    position, header = list(iter_batches(bytes(data)))[number]
    data[position + 65] ^= 1
    path.write_bytes(data)
    assert header.last_offset == header.base_offset
    return header.base_offset


async def transactional_id(user: User, name: str) -> ErrorCode:
    request = initialising.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    return ErrorCode((await user.send(request, 4)).error_code)


async def test_groups_go_by_the_commits_that_are_left(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    folder = tmp_path / "__consumer_offsets-0"
    async with home.running() as user:
        await user.create_topic("orders")
        for group, offset in (("a", 1), ("b", 2), ("a", 3), ("b", 4), ("c", 5)):
            await user.commit(group, "orders", offset)
    lost = spoil_batch(folder, 2)
    async with home.running() as user:
        await user.find_coordinator("a")
        assert await user.try_to_commit("c", "orders", 9) != ErrorCode.NONE

    before = (folder / f"{0:020d}.log").read_bytes()
    told = await repair("--accept-loss", "--dry-run", folder)
    assert f"offsets {lost} to {lost} would be accepted as lost" in told.err
    assert (folder / f"{0:020d}.log").read_bytes() == before
    told = await repair("--accept-loss", folder)
    assert f"{folder}/{0:020d}.log: offsets {lost} to {lost} are accepted as lost" in told.err
    assert told.status == 0

    async with home.running() as user:
        assert await user.committed("a") == {("orders", 0): 1}
        assert await user.committed("b") == {("orders", 0): 4}
        assert await user.committed("c") == {("orders", 0): 5}
        await user.commit("a", "orders", 7)
    async with home.running() as user:
        assert await user.committed("a") == {("orders", 0): 7}
    assert run_command("log", "verify", str(folder)).status == 0


async def test_transactions_go_by_the_records_that_are_left(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    folder = tmp_path / "__transaction_state-0"
    async with home.running() as user:
        wanted = finding.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
        answer = await user.send(wanted, 4)
        assert ErrorCode(answer.coordinators[0].error_code) == ErrorCode.NONE
        for name in ("x", "y", "z"):
            assert await transactional_id(user, name) == ErrorCode.NONE
    spoil_batch(folder, 1)
    async with home.running() as user:
        assert await transactional_id(user, "z") != ErrorCode.NONE
    assert (await repair("--accept-loss", folder)).status == 0
    async with home.running() as user:
        for name in ("x", "y", "z"):
            assert await transactional_id(user, name) == ErrorCode.NONE


@pytest.mark.parametrize("place", ["", "orders-0"])
def test_a_loss_is_accepted_for_one_partition_after_the_other(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n")
    result = run_command("log", "repair", "--accept-loss", str(tmp_path / place))
    assert result.status == (0 if place else 2)
    assert ("not for a log directory" in result.err) is not bool(place)


def partition_in(log_directory: Path, name: str) -> Path:
    """A partition without records."""
    log = create_log(
        Environment(OsFileSystem()),
        LogIdentity(str(log_directory / name), "orders", 0, bytes(16)),
        LogConfig(),
    )
    assert log.close()
    return log_directory / name


async def test_several_partitions_of_a_log_directory_are_repaired_at_once(tmp_path: Path) -> None:
    """Before, each of them wanted the directory's lock, and the second did not get it."""
    (tmp_path / "other-way").symlink_to(tmp_path)
    first, second = partition_in(tmp_path, "orders-0"), partition_in(tmp_path, "orders-1")
    for paths in ((first, second), (first, tmp_path / "other-way" / "orders-1")):
        told = await repair("--accept-loss", *paths)
        assert told == (0, "".join(f"{path}: 0 records in 1 segments: ok\n" for path in paths), "")


async def test_what_is_left_in_one_partition_counts_beside_another_that_is_whole(tmp_path: Path) -> None:
    broken, whole = partition_in(tmp_path / "a", "orders-0"), partition_in(tmp_path / "b", "orders-1")
    (broken / f"{0:020d}.txnindex").write_bytes(b"\xff" * 34)
    for paths in ((broken, whole), (whole, broken)):
        told = await repair("--accept-loss", *paths)
        assert "(nothing that can be done here)" in told.out
        assert told.status == 1
