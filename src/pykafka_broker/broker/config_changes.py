"""Gives a changed configuration to the parts that keep values of it: fetches, coordinators, share groups,
partitions, the broker's registration, the listeners and the fetchers. The logs get theirs in `node_logs.py`.
"""

from __future__ import annotations

from pykafka_broker.apis.ports.fetching import Fetching
from pykafka_broker.broker.lifecycle import BrokerLifecycle
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.share_groups import ShareGroups
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.coordinators import Coordinators
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.replication.replica_manager import ReplicaManager


class ConfigChanges:
    """Subscribes to the dynamic configuration. Event loop only."""

    def __init__(
        self,
        fetching: Fetching,
        coordinators: Coordinators,
        shares: ShareGroups,
        replicas: ReplicaManager,
        lifecycle: BrokerLifecycle,
        listeners: ServedListeners,
        fetchers: ReplicaFetchers,
    ) -> None:
        self._fetching = fetching
        self._coordinators = coordinators
        self._shares = shares
        self._replicas = replicas
        self._lifecycle = lifecycle
        self._listeners = listeners
        self._fetchers = fetchers

    def apply(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """`new` is in force from now on."""
        self._fetching.max_bytes = new["fetch.max.bytes"]
        self._fetching.sessions.max_entries = new["max.incremental.fetch.session.cache.slots"]
        self._coordinators.reconfigure(new)
        self._shares.reconfigure(new)
        self._replicas.reconfigure()
        self._replicas.throttle(new["leader.replication.throttled.rate"])
        self._lifecycle.recordon(new.cordoned_log_dirs)
        self._listeners.reconfigure(old, new)
        self._fetchers.throttle(new["follower.replication.throttled.rate"])
        self._fetchers.resize(new["num.replica.fetchers"])
