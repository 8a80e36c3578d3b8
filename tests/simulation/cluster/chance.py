"""What processes draw at random comes from the seed, and their threads are those of the simulation."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from pykafka_broker.broker import threads
from pykafka_broker.log.disk import start_reserve
from pykafka_broker.log.manager import disk_threads
from pykafka_broker.raft import format as raft_format
from tests.simulation.cluster.node_process import SimulatedPool


@contextmanager
def of_seed(chance: random.Random) -> Iterator[None]:
    """Let everything that is random in this process come from `chance`."""
    before = random.getstate()
    random.seed(chance.getrandbits(64))
    with ExitStack() as patches:
        for module in (os, raft_format, start_reserve):
            patches.enter_context(mock.patch.object(module, "urandom", chance.randbytes))
        for module in (threads, disk_threads):
            patches.enter_context(mock.patch.object(module, "ThreadPoolExecutor", SimulatedPool))
        try:
            yield
        finally:
            random.setstate(before)
