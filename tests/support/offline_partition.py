"""A broker of which one of two disks has failed, so that one of two partitions of a topic is offline."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.system.event_loop import loop_factory
from pykafka_broker.testing.home import Home, until

TOPIC, GROUP = "halves", "readers"


class HalfOffline(NamedTuple):
    """Where the broker is, the partition without a leader, and the other one. Each has two records, and the
    group `GROUP` has read one of them.
    """

    address: str
    offline: int
    led: int


@contextmanager
def half_offline() -> Iterator[HalfOffline]:
    """The broker runs in a thread: who asks it may wait."""
    ready, stop = threading.Event(), asyncio.Event()
    found: list[HalfOffline] = []
    loop = loop_factory()()

    async def serve() -> None:
        settings = {"metadata.log.dir": "/meta", "offsets.topic.num.partitions": "1"}
        home = Home(settings, data_dir="/a,/b", clock=SystemClock())
        async with home.running() as user:
            # The first log goes to the first directory, which keeps working.
            await user.find_coordinator(GROUP)
            await user.create_topic(TOPIC, 2)
            for partition in range(2):
                await user.produce(TOPIC, b"one", b"two", partition=partition)
                await user.commit(GROUP, TOPIC, 1, partition=partition)
            assert home.files.exists("/a/__consumer_offsets-0")
            [offline] = (number for number in range(2) if home.files.exists(f"/b/{TOPIC}-{number}"))
            home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
            await user.try_to_produce(TOPIC, b"lost", partition=offline)
            await until(lambda: home.broker.node.image.topics[TOPIC].partitions[offline].leader < 0)
            found.append(HalfOffline(home.broker.bootstrap_servers, offline, 1 - offline))
            ready.set()
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(120)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
