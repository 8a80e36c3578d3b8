"""A broker that may hardly open a file any more."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.testing.home import Home
from tests.support.descriptors import descriptors_left


async def test_idle_logs_give_their_descriptors_to_one_that_rolls(tmp_path: Path) -> None:
    """Before, the reserve was filled once a second; a write in between that found it empty was refused."""
    home = Home({"log.segment.bytes": "1048576"}, files=OsFileSystem(), data_dir=str(tmp_path))
    async with home.running() as user, AsyncExitStack() as undo:
        await user.create_topic("orders", partitions=4)

        async def write_to_all(value: bytes) -> None:
            for partition in range(4):
                await user.produce("orders", value, partition=partition)

        def take_all() -> None:
            while reserve.lend():
                undo.callback(os.close, os.open(os.devnull, os.O_RDONLY))

        reserve = home.broker.node.foundation.descriptors
        await write_to_all(bytes(600_000))
        undo.enter_context(descriptors_left(0))
        take_all()
        await user.metadata()  # meanwhile the broker fills its reserve, the only time within this second
        await write_to_all(b"whose file stays open")
        take_all()
        await write_to_all(bytes(600_000))
        segments = [len(log.state.segments) for log in home.broker.node.logs if log.topic == "orders"]
        assert segments == [2] * 4
