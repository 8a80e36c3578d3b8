"""A broker that was killed on a full disk starts there again: it is read from, and refuses producers."""

from __future__ import annotations

import pytest

from pykafka_broker.log.disk.start_reserve import RESERVE_BYTES, RESERVE_FILE, ROOMY
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import DATA, Home, until
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import User

RESERVE = f"{DATA}/{RESERVE_FILE}"


def held_bytes(files: MemoryFiles) -> int:
    inode = files.inodes.get(RESERVE)
    return 0 if inode is None else len(inode.data)


async def used_home() -> tuple[Home, list[bytes]]:
    """A home with a log of several segments, a producer and committed offsets; and what was written."""
    home = Home()
    values = [b"%2d" % number * 50_000 for number in range(30)]
    async with home.running() as user:
        await user.create_topic("orders", segment_bytes="1048576")
        for number, value in enumerate(values):
            await user.produce("orders", value, producer_id=4711, producer_epoch=0, base_sequence=number)
        await user.commit("readers", "orders", 7)
        return home.killed(), values


async def test_a_broker_killed_on_a_full_disk_starts_serves_and_heals_by_itself() -> None:
    home, values = await used_home()
    home.files.free_bytes = 0
    for _ in range(5):
        async with home.new_broker() as broker, await User.connect(broker.bootstrap_servers) as user:
            assert await user.values("orders") == values
            assert await user.committed("readers") == {("orders", 0): 7}
            refused = await user.try_to_produce("orders", b"more")
            assert ErrorCode(refused.error_code) == ErrorCode.KAFKA_STORAGE_ERROR
            assert home.files.free_bytes == 0, "what is left of the reserve is kept from producers"
            killed = home.killed()
        killed.files.free_bytes = 0
        home = killed
    assert 0 < held_bytes(home.files) < RESERVE_BYTES

    async with home.running() as user:
        home.files.heal()
        assert await user.produce("orders", b"again") == len(values)
        await home.pass_time(1_000)
        await until(lambda: held_bytes(home.files) == RESERVE_BYTES)


async def test_room_for_a_start_is_kept_only_where_there_is_plenty() -> None:
    home = Home()
    home.files.free_bytes = ROOMY * RESERVE_BYTES - 1
    async with home.running() as user:
        await user.create_topic("orders")
        assert held_bytes(home.files) == 0
        home.files.free_bytes = ROOMY * RESERVE_BYTES
        await home.pass_time(1_000)
        await until(lambda: held_bytes(home.files) == RESERVE_BYTES)


async def test_a_start_with_room_leaves_the_reserve_alone() -> None:
    home = Home()
    async with home.running():
        pass
    before = bytes(home.files.inodes[RESERVE].data)
    async with home.running():
        pass
    assert bytes(home.files.inodes[RESERVE].data) == before


async def test_a_full_disk_without_the_reserve_is_a_refusal_that_names_the_disk() -> None:
    home, _ = await used_home()
    home.files.remove(RESERVE)
    home.files.free_bytes = 0
    with pytest.raises(OSError, match="No space left on device"):
        await home.new_broker().start()
    assert home.files.locked == set()
