"""Gives a changed configuration to the parts that keep values of it: fetches, coordinators, share groups,
partitions, the broker's registration, the listeners and the fetchers. `node_logs.py` does so for the logs.
"""

from __future__ import annotations

from pykafka_broker.apis.ports.fetching import Fetching
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.share_groups import ShareGroups
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.coordinators import Coordinators
from pykafka_broker.membership.lifecycle import BrokerLifecycle
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.system.named_tuple import NamedTuple


class ConfigChanges(NamedTuple):
    """Subscribes to the dynamic configuration. Event loop only."""

    fetching: Fetching
    coordinators: Coordinators
    shares: ShareGroups
    replicas: ReplicaManager
    lifecycle: BrokerLifecycle
    listeners: ServedListeners
    fetchers: ReplicaFetchers

    def apply(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Apply `new`."""
        self.fetching.max_bytes = new["fetch.max.bytes"]
        self.fetching.sessions.max_entries = new["max.incremental.fetch.session.cache.slots"]
        self.coordinators.reconfigure(new)
        self.shares.reconfigure(new)
        self.replicas.reconfigure()
        self.replicas.throttle(new["leader.replication.throttled.rate"])
        self.lifecycle.recordon(new.cordoned_log_dirs)
        self.listeners.reconfigure(old, new)
        self.fetchers.throttle(new["follower.replication.throttled.rate"])
        self.fetchers.resize(new["num.replica.fetchers"])
