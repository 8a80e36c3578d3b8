"""A kit for tests of programs that use Kafka: brokers to start, a clock to move, files that fail.

A broker as a process of its own, for any client:

    from pykafka_broker.testing import PykafkaBroker

    @pytest.fixture(scope="session")
    def bootstrap_servers():
        with PykafkaBroker({"num.partitions": "3"}) as broker:
            yield broker.address

A broker in the test's own event loop, with files in memory and a clock that stands still:

    from pykafka_broker.testing import Home

    async def test_a_record_outlives_a_crash():
        home = Home()
        async with home.running() as user:
            await user.create_topic("orders")
            await user.produce("orders", b"one")
            crashed = home.killed()
        async with crashed.running() as user:
            assert await user.values("orders") == [b"one"]

    processes.py          brokers as processes: PykafkaBroker; ports
    home.py               brokers in this process: Home
    user.py               the client that talks to them in few words: User
    clock.py              VirtualClock
    memory_files.py       MemoryFiles: full, broken and slow disks, kill -9, power cuts
    memory_transport.py   MemoryTransport: a connection whose peer is the test
    messages.py           samples and Hypothesis strategies of every message; needs Hypothesis
    apache/               Apache Kafka as a peer; needs Java 17 and Maven
    cache.py              where fetched jars are kept

Nothing here imports pytest, and a broker imports nothing from here. Everything below is imported on first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykafka_broker.testing.clock import VirtualClock, settle
    from pykafka_broker.testing.home import Home, until
    from pykafka_broker.testing.memory_files import MemoryFiles
    from pykafka_broker.testing.memory_transport import MemoryTransport
    from pykafka_broker.testing.processes import BrokerError, BrokerProcess, PykafkaBroker, free_port
    from pykafka_broker.testing.user import User

__all__ = [
    "BrokerError",
    "BrokerProcess",
    "Home",
    "MemoryFiles",
    "MemoryTransport",
    "PykafkaBroker",
    "User",
    "VirtualClock",
    "free_port",
    "settle",
    "until",
]

_MODULES = {
    "BrokerError": "processes",
    "BrokerProcess": "processes",
    "Home": "home",
    "MemoryFiles": "memory_files",
    "MemoryTransport": "memory_transport",
    "PykafkaBroker": "processes",
    "User": "user",
    "VirtualClock": "clock",
    "free_port": "processes",
    "settle": "clock",
    "until": "home",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
