"""The configuration of a share group that its partitions act on; may be swapped between two events."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

#: Below this no delivery count makes records be delivered in smaller pieces.
_LEAST_THROTTLED_DELIVERY_COUNT = 2


class ShareConfig(NamedTuple):
    """Kafka's `share.*` of a group, or else the broker's `group.share.*`."""

    #: `share.partition.max.record.locks`: offsets from the start to the end offset of one partition.
    partition_max_record_locks: int = 2000
    #: `share.delivery.count.limit`: a record that comes back after so many deliveries is archived.
    delivery_count_limit: int = 5
    #: `share.record.lock.duration.ms`
    record_lock_duration_ms: int = 30_000
    #: `share.renew.acknowledge.enable` (KIP-1222)
    renew_acknowledge_enable: bool = True

    @property
    def throttled_delivery_count(self) -> int:
        """From so many deliveries on, records are delivered in smaller and smaller pieces: half of the limit,
        rounded up.
        """
        return max(_LEAST_THROTTLED_DELIVERY_COUNT, (self.delivery_count_limit + 1) // 2)

    @property
    def last_delivery_count(self) -> int | None:
        """The delivery count of records whose next delivery is their last, which each gets alone; None if the
        limit is too small for that.
        """
        return self.delivery_count_limit - 1 if self.delivery_count_limit > 2 else None
