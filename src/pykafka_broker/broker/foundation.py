"""The foundation of every part of a node: configuration, time, files, threads."""

from __future__ import annotations

from pykafka_broker.broker.failure import Failure
from pykafka_broker.broker.threads import Threads
from pykafka_broker.config import BrokerConfig, DynamicConfig
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.history import History
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.system.named_tuple import NamedTuple


class Foundation(NamedTuple):
    """Made inside the event loop, when a broker starts."""

    configs: DynamicConfig
    clock: Clock
    timers: WallTimers
    files: FileSystem
    threads: Threads
    descriptors: DescriptorReserve
    failure: Failure
    history: History

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self.configs.current

    @property
    def node_id(self) -> int:
        """The id of this node in its cluster."""
        return self.configs.static.node_id


def lay(config: BrokerConfig, clock: Clock, files: FileSystem) -> Foundation:
    """The foundation of a broker that starts with `config`."""
    return Foundation(
        DynamicConfig(config),
        clock,
        WallTimers(clock),
        files,
        Threads(config.node_id),
        DescriptorReserve(),
        Failure(),
        History(clock.now_ms),
    )
