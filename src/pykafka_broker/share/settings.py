"""The settings of a share partition: the group's own configuration, or else the broker's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.groups import group_value
from pykafka_broker.config.keys import duration_ms
from pykafka_broker.log.partition.limit import Limit
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.system.named_tuple import NamedTuple

EARLIEST, LATEST = "earliest", "latest"

_LIMITS: dict[str, Limit] = {"read_uncommitted": "high_watermark", "read_committed": "last_stable"}


class OffsetResetStrategy(NamedTuple):
    """`share.auto.offset.reset`: where a group begins in a partition without share state."""

    #: `earliest`, `latest` or `by_duration`.
    strategy: str = LATEST
    #: How far back from now, for `by_duration`.
    duration_ms: int = 0


class SharePartitionSettings(NamedTuple):
    """The settings of the share partitions of one group."""

    #: What the core of its share partitions acts on.
    partitions: ShareConfig = ShareConfig()
    #: The limit up to which members read, by `share.isolation.level`.
    limit: Limit = "high_watermark"
    offset_reset: OffsetResetStrategy = OffsetResetStrategy()


class ShareSettings(NamedTuple):
    """The settings of all share groups."""

    default: SharePartitionSettings = SharePartitionSettings()
    by_group: Mapping[str, SharePartitionSettings] = {}

    def of(self, group_id: str) -> SharePartitionSettings:
        """The settings of a group."""
        return self.by_group.get(group_id, self.default)


def share_settings(config: BrokerConfig, image: ClusterImage) -> ShareSettings:
    """The settings from the broker's configuration and the group configurations in the metadata."""
    return ShareSettings(
        share_partition_settings(config, {}),
        {
            name: share_partition_settings(config, values)
            for name, values in image.configs_of(ResourceType.GROUP).items()
        },
    )


def share_partition_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> SharePartitionSettings:
    """The settings of a share group with these overrides."""
    value = partial(group_value, config, overrides)
    partitions = ShareConfig(
        partition_max_record_locks=value("share.partition.max.record.locks"),
        delivery_count_limit=value("share.delivery.count.limit"),
        record_lock_duration_ms=value("share.record.lock.duration.ms"),
        renew_acknowledge_enable=value("share.renew.acknowledge.enable"),
    )
    return SharePartitionSettings(
        partitions,
        _LIMITS[value("share.isolation.level")],
        offset_reset(value("share.auto.offset.reset")),
    )


def offset_reset(text: str) -> OffsetResetStrategy:
    """Parse `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration."""
    strategy, _, duration = text.partition(":")
    return OffsetResetStrategy(strategy, duration_ms(duration) or 0)
