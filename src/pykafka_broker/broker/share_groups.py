"""The state of share groups on a broker: the members' sessions, and the share partitions led here.

Both are dropped when `share.version` is lowered to a level without share groups.
"""

from __future__ import annotations

from pykafka_broker.apis.sharing.sessions import ShareSessions
from pykafka_broker.cluster.features import SHARE_VERSION
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.steady_timers import SteadyTimers
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.share.settings import share_settings
from pykafka_broker.share.share_partition import LogReads, ShareNode, ShareStates
from pykafka_broker.share.share_partitions import SharePartitions


class ShareGroups:
    """Owns the sessions and the share partitions. Event loop only."""

    def __init__(self, config: BrokerConfig, states: ShareStates, reads: LogReads, clock: Clock) -> None:
        self.sessions = ShareSessions(config["group.share.max.share.sessions"])
        self._config = config
        self._image = ClusterImage()
        timers = SteadyTimers(WallTimers(clock))
        self.partitions = SharePartitions(
            ShareNode(states, reads, timers), share_settings(config, self._image)
        )

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._config = config
        self.partitions.settings = share_settings(config, self._image)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the settings of groups, and the finalized `share.version`."""
        self._image = new
        if new.configs is not old.configs:
            self.reconfigure(self._config)
        if old.features.get(SHARE_VERSION, 0) >= 1 > new.features.get(SHARE_VERSION, 0):
            self.sessions.clear()
            self.partitions.drop_everything()
