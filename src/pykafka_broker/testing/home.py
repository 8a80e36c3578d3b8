"""Brokers in the test's own process and event loop, with files in memory and a clock that the test moves.

    home = Home({"num.partitions": "3"})
    async with home.running() as user:              # broker and connection: home.broker, user
        await user.create_topic("orders")
        await user.produce("orders", b"one", b"two")
        await home.pass_time(60_000)
    async with home.running() as user:              # a second start with the same files and the same clock
        assert await user.values("orders") == [b"one", b"two"]

Time stands still unless the test moves it. `home.killed()` is the home that the next process finds after a
kill -9 now. Other clients connect to `home.broker.bootstrap_servers`; if these need time to pass by itself,
give `Home` a `SystemClock`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pykafka_broker.broker.broker import Broker
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.sources import load_config
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.machine.clock import Clock
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import User

DATA = "/data"
#: How long `until` waits in real time, for worker threads on a busy machine.
PATIENCE_SECONDS = 60


async def until(is_true: Callable[[], object]) -> None:
    """Let tasks and worker threads run until `is_true()`."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_true():  # noqa: ASYNC110 - worker threads have no event to wait for
            await asyncio.sleep(0)


class Home:
    """All that outlives the process of a broker: its configuration, its files, and time.

    `overrides` are keys of server.properties. `data_dir` (which may name several folders), `listen` and
    `cluster_id` are the options of `pykafka-broker start`.
    """

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        data_dir: str | None = DATA,
        listen: str | None = "127.0.0.1:0",
        cluster_id: str | None = None,
    ) -> None:
        #: `MemoryFiles`, unless others were given; Any, so that a test may use the methods of its own files.
        self.files: Any = MemoryFiles() if files is None else files
        #: A `VirtualClock`, unless another was given.
        self.clock: Any = VirtualClock() if clock is None else clock
        #: A change counts from the next start on.
        self.overrides = dict(overrides or {})
        #: The broker that was made last.
        self.broker: Broker
        self._data_dir = data_dir
        self._listen = listen
        self._cluster_id = cluster_id

    def config(self) -> BrokerConfig:
        """The configuration a start would read now."""
        return load_config(
            overrides=[f"{key}={value}" for key, value in self.overrides.items()],
            data_dir=self._data_dir,
            listen=self._listen,
            cluster_id=self._cluster_id,
        )

    def new_broker(self) -> Broker:
        """A broker that lives here and has not been started."""
        self.broker = Broker(self.config(), clock=self.clock, files=self.files)
        return self.broker

    @asynccontextmanager
    async def running(self) -> AsyncIterator[User]:
        """A started broker, and a user connected to it; stopped in order afterwards."""
        async with self.new_broker() as broker, await User.connect(broker.bootstrap_servers) as user:
            yield user

    async def pass_time(self, duration_ms: int) -> None:
        """Let virtual time pass, and worker threads finish the work of each second of it."""
        work = self.broker.node.broker.periodic_work
        for step_ms in (1_000,) * (duration_ms // 1_000) + (duration_ms % 1_000,):
            await self.clock.pass_time(step_ms)
            await until(lambda: not work.is_under_way)

    def killed(self) -> Home:
        """The same home as the next process finds it if this one is killed now."""
        after = Home(
            self.overrides,
            files=self.files.killed(),
            clock=self.clock,
            data_dir=self._data_dir,
            listen=self._listen,
            cluster_id=self._cluster_id,
        )
        after.files.now_ms = self.files.now_ms
        return after
