"""A machine of a node: its disk and its address outlive the process that runs on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pykafka_broker.broker.broker import Broker
from pykafka_broker.config.sources import load_config
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.simulation.cluster.node_process import NodeProcess
from tests.simulation.cluster.wires import Wires
from tests.simulation.process import ProcessClock
from tests.simulation.violation import Violation
from tests.simulation.world import World

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
#: A clean stop that has not ended by then never will.
STOP_MS = 60_000
#: What runs a node starts it again after this time, if its full disk has ended it.
START_AGAIN_MS = 1_000


class Machine:
    """One machine; `broker` is the node that runs, None while none does."""

    def __init__(self, world: World, wires: Wires, number: int, keys: Mapping[str, str]) -> None:
        self.number = number
        self.host = f"10.0.0.{number}"
        self.has_power = True
        self.files = MemoryFiles()
        self.broker: Broker | None = None
        self.process: NodeProcess | None = None
        self.paused_until_ms = 0
        self.is_serving = False
        self._world = world
        self._wires = wires
        self._keys = keys
        self._life = 0
        #: Whether the disk was full at some time of this life.
        self._has_been_full = False

    def __repr__(self) -> str:
        return f"n{self.number}"

    @property
    def is_up(self) -> bool:
        """Whether a process runs, paused or not."""
        return self.process is not None

    @property
    def is_full(self) -> bool:
        """Whether the disk has little room or none."""
        return self.files.free_bytes is not None

    def fill(self, free_bytes: int) -> None:
        """Leave the disk this much room."""
        self._world.note(lambda: f"{self} has {free_bytes} bytes free")
        self.files.free_bytes = free_bytes
        self._has_been_full = True

    def make_room(self) -> None:
        """Let the disk take all writes."""
        self.files.free_bytes = None

    def start(self) -> None:
        """Start the node, unless it runs."""
        if self.process is not None:
            return
        self._life += 1
        self.has_power = True
        self._has_been_full = self.is_full
        self._world.note(lambda: f"{self} starts")
        world, profile = self._world, self._wires.network.profile
        process = NodeProcess(  # type: ignore[abstract]  # what asyncio needs of it is there
            world, self._wires, self, lambda: self.paused_until_ms, profile.flush_ms
        )
        self.process = process
        drift = profile.clock_drift
        clock = ProcessClock(process, 1 + world.random.uniform(-drift, drift))
        config = load_config(
            overrides=[f"{key}={value}" for key, value in self._keys.items()],
            data_dir="/data",
            cluster_id=CLUSTER_ID,
        )
        self.broker = Broker(config, clock=clock, files=self.files)
        run = partial(self._run, self.broker, self._life)
        process.call_after(0, lambda: process.create_task(run()))

    async def _run(self, broker: Broker, life: int) -> None:
        try:
            await broker.start()
        except Exception as error:
            text = f"{self} cannot start: {error!r}"
            self._world.note(lambda: text)
            if life == self._life:
                self._ended()
                if self._has_been_full:
                    self._world.at(START_AGAIN_MS, self.start)
            return
        if life == self._life:
            self.is_serving = True
            self._world.note(lambda: f"{self} serves")
            await self._outlive(broker, life)

    async def _outlive(self, broker: Broker, life: int) -> None:
        """End the process of a node that cannot go on, which only one may whose disk was full."""
        try:
            await broker.failed()
        except Exception as error:
            if life != self._life:
                return
            if not self._has_been_full:
                raise
            text = f"{self} cannot go on: {error!r}"
            self._world.note(lambda: text)
            self.kill()
            self._world.at(START_AGAIN_MS, self.start)

    def kill(self) -> None:
        """End the process at once; the disk has what the process has written."""
        if self.process is not None:
            self._world.note(lambda: f"{self} is killed")
            self._find(self.files.killed())
            self._ended()

    def _find(self, files: MemoryFiles) -> None:
        """What is on the disk after the process has ended; a disk that was full still is."""
        files.free_bytes = self.files.free_bytes
        self.files = files

    def cut_power(self) -> None:
        """Lose what was not synced, and say nothing to anybody."""
        if self.process is not None:
            self._world.note(lambda: f"{self} loses its power")
            self._find(self.files.power_cut(self._world.random))
            self.has_power = False
            self._ended()

    def stop(self, stopped: Callable[[], None]) -> None:
        """Stop the node in order."""
        process, broker = self.process, self.broker
        if process is None or broker is None or not self.is_serving:
            return
        self._world.note(lambda: f"{self} is asked to stop")
        self.is_serving = False
        life = self._life

        async def stop() -> None:
            await broker.stop()
            if life == self._life:
                self._world.note(lambda: f"{self} has stopped")
                self._find(self.files.killed())
                self._ended()
                stopped()

        def check() -> None:
            if life == self._life and self.process is process and self.paused_until_ms < self._world.now_ms:
                raise Violation(f"{self} does not stop in {STOP_MS} ms")

        process.call_after(0, lambda: process.create_task(stop()))
        self._world.at(STOP_MS, check)

    def _ended(self) -> None:
        process, self.process = self.process, None
        self.broker = None
        self.is_serving = False
        self.paused_until_ms = 0
        self._life += 1
        assert process is not None
        process.end()
