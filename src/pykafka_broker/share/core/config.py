"""The configuration of a share group that its partitions act on; may be swapped between two events."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

#: Records with a lower delivery count are never delivered in smaller pieces.
_LEAST_THROTTLED_DELIVERY_COUNT = 2


class ShareConfig(NamedTuple):
    """Kafka's `share.*` of a group, or else the broker's `group.share.*`."""

    #: `share.partition.max.record.locks`: offsets from the start to the end offset of one partition.
    partition_max_record_locks: int = 2000
    #: `share.delivery.count.limit`: a record that is given back after this many deliveries is archived.
    delivery_count_limit: int = 5
    #: `share.record.lock.duration.ms`
    record_lock_duration_ms: int = 30_000
    #: `share.renew.acknowledge.enable` (KIP-1222)
    renew_acknowledge_enable: bool = True

    @property
    def throttled_delivery_count(self) -> int:
        """From this delivery count on, records are delivered in ever smaller pieces: half of the limit,
        rounded up, but at least 2.
        """
        return max(_LEAST_THROTTLED_DELIVERY_COUNT, (self.delivery_count_limit + 1) // 2)

    @property
    def last_delivery_count(self) -> int | None:
        """The delivery count before the last delivery, in which each record goes alone; None if the limit
        is below 3.
        """
        return self.delivery_count_limit - 1 if self.delivery_count_limit > 2 else None
