"""One partition held by this node: its log, its leader in the metadata, and the role of this node.

`become` sets the role. While this node leads, `leading` has the rules of replication (`leading_replica.py`);
while it follows, the fetchers do the work (`following_replica.py`).
"""

from __future__ import annotations

from pykafka_broker.cluster.image import NO_LEADER, PartitionRegistration
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH
from pykafka_broker.replication.core.throttling import is_throttled
from pykafka_broker.replication.leading_replica import LeadingReplica, PartitionPorts
from pykafka_broker.replication.topic_counts import TopicCounts


class Partition:
    """One replica held here. Event loop only."""

    __slots__ = (
        "_leading",
        "_ports",
        "counts",
        "is_being_added",
        "is_in_sync",
        "is_throttled_follower",
        "is_unsettled",
        "leader",
        "leader_epoch",
        "leading",
        "log",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        log: PartitionLog,
        ports: PartitionPorts,
        counts: TopicCounts,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.log = log
        #: Those of its topic.
        self.counts = counts
        #: The broker that leads the partition in `leader_epoch`; NO_LEADER if none does.
        self.leader = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        #: The role of the leader, while this node has it.
        self.leading: LeadingReplica | None = None
        #: Whether this replica is in the ISR of the metadata.
        self.is_in_sync = False
        #: Whether a reassignment adds this replica.
        self.is_being_added = False
        #: Whether the checkpoint of a truncation is not written yet: a follower fetches nothing before that,
        #: even if another leader epoch begins.
        self.is_unsettled = False
        self._ports = ports
        #: Made when this node leads for the first time.
        self._leading: LeadingReplica | None = None
        self._throttle(log.state.config)

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, epoch={self.leader_epoch}, leader={self.leader})"

    @property
    def is_end_known(self) -> bool:
        """False while a new leader's high watermark may be behind the one that consumers have seen."""
        return self.leading is None or self.leading.is_end_known

    def become(self, registration: PartitionRegistration) -> None:
        """Take the role that the metadata gives."""
        if self.leading is not None and self.leading.is_outdated(registration):
            return
        node_id, is_new_epoch = self._ports.node_id, registration.leader_epoch != self.leader_epoch
        self.is_in_sync = node_id in registration.isr
        self.is_being_added = node_id in registration.adding
        if registration.leader != node_id:
            self._resign()
            self.leader = registration.leader
            self.leader_epoch = registration.leader_epoch
            if is_new_epoch:
                self.log.state.wake_waiting()  # parked fetches, whose clients must ask another broker
            return
        if is_new_epoch:
            self.log.epoch_file.begin(registration.leader_epoch)
        self.leader = node_id
        self.leader_epoch = registration.leader_epoch
        if self._leading is None:
            self._leading = LeadingReplica(self.topic_id, self.log, self._ports, self.counts)
        self.leading = self._leading
        self.leading.take_up(registration)

    def resign(self) -> None:
        """Stop leading the partition, if this node leads it."""
        was_led_here = self.leading is not None
        self._resign()
        if was_led_here:
            self.log.state.wake_waiting()

    def _resign(self) -> None:
        leading, self.leading, self.leader = self.leading, None, NO_LEADER
        if leading is not None:
            leading.resign()

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's changed settings."""
        self.log.state.reconfigure(config)
        self._throttle(config)
        if self.leading is not None:
            self.leading.configure(config)

    def _throttle(self, config: LogConfig) -> None:
        replicas = config.follower_replication_throttled_replicas
        self.is_throttled_follower = is_throttled(replicas, self.partition, self._ports.node_id)

    def move_to(self, log: PartitionLog) -> None:
        """The log has moved to another directory."""
        self.log = log
        if self._leading is not None:
            self._leading.log = log
