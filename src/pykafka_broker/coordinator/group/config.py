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
    #: For the records, not for the topic.
    offsets_topic_compression_codec: Codec = Codec.NONE
    consumer_group: ConsumerGroupSettings = ConsumerGroupSettings()
    #: Settings of single groups, by group id.
    consumer_group_overrides: Mapping[str, ConsumerGroupSettings] = MappingProxyType({})
    consumer_group_max_size: int = 2_147_483_647
    #: The first is used where members do not ask for another.
    consumer_group_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_group_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_group_regex_refresh_interval_ms: int = 600_000

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """The settings of one consumer group."""
        return self.consumer_group_overrides.get(group_id, self.consumer_group)
