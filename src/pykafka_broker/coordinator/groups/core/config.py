"""The configuration values the group coordinator acts on. They may be swapped while it runs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.system.named_tuple import NamedTuple


class MigrationPolicy(enum.Enum):
    """May a live group change between the classic and the consumer protocol, and which way?"""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupSettings(NamedTuple):
    """The values that may be set for each consumer group on its own."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class StreamsGroupSettings(NamedTuple):
    """The values that may be set for each streams group on its own, and the most members of any."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    num_standby_replicas: int = 0
    #: How long the first assignment of an empty group waits for more members.
    initial_rebalance_delay_ms: int = 3_000
    #: The least time between two assignments.
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647


class ShareGroupSettings(NamedTuple):
    """The values that may be set for each share group on its own."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class GroupCoordinatorConfig(NamedTuple):
    """The configuration values the coordinator acts on; may be swapped while it runs."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    #: The timeout of an answer that waits for its records to be replicated; a change affects new shards only.
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    #: The codec of the coordinator's records, not of the topic.
    offsets_topic_compression_codec: Codec = Codec.NONE
    consumer_group: ConsumerGroupSettings = ConsumerGroupSettings()
    #: Settings of single groups, by group id.
    consumer_group_overrides: Mapping[str, ConsumerGroupSettings] = MappingProxyType({})
    consumer_group_max_size: int = 2_147_483_647
    #: The first assignor serves groups whose members ask for no other.
    consumer_group_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_group_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_group_regex_refresh_interval_ms: int = 600_000
    share_group: ShareGroupSettings = ShareGroupSettings()
    #: Settings of single groups, by group id.
    share_group_overrides: Mapping[str, ShareGroupSettings] = MappingProxyType({})
    share_group_max_size: int = 200
    #: The first assignor is used.
    share_group_assignors: tuple[str, ...] = ("simple",)
    #: The age at which an unanswered initialization of share states is requested again.
    share_group_initialize_retry_interval_ms: int = 30_000

    streams_group: StreamsGroupSettings = StreamsGroupSettings()
    #: Settings of single groups, by group id.
    streams_group_overrides: Mapping[str, StreamsGroupSettings] = MappingProxyType({})

    def streams_settings(self, group_id: str) -> StreamsGroupSettings:
        """The settings of one streams group."""
        return self.streams_group_overrides.get(group_id, self.streams_group)

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """The settings of one consumer group."""
        return self.consumer_group_overrides.get(group_id, self.consumer_group)

    def share_settings(self, group_id: str) -> ShareGroupSettings:
        """The settings of one share group."""
        return self.share_group_overrides.get(group_id, self.share_group)
