"""The configuration of one partition log: the resolved values of Kafka's topic-level log settings.

`config/` resolves names, types, bounds, synonyms and broker defaults; the log gets only this frozen value,
and a new one at any time (dynamic topic configs). Defaults are Apache Kafka 4.3's. Times are milliseconds,
sizes bytes, and -1 means "no limit" exactly where Kafka says so (`retention_*`). `min_insync_replicas` and
`unclean_leader_election_enable` are carried for the replica layer; the log itself never looks at them.
"""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

LONG_MAX = (1 << 63) - 1

DAY_MS = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """One partition's log settings; names are Kafka's topic configs with the unit spelled out."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    preallocate: bool = False

    max_message_bytes: int = 1024 * 1024 + 12
    #: "producer" keeps the codec of the client; otherwise the name of the codec to store with.
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    #: "CreateTime" or "LogAppendTime".
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 60 * 60 * 1000

    #: Empty keeps everything forever.
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000

    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX

    producer_id_expiration_ms: int = DAY_MS
    #: A transaction's first batch must have been confirmed by the coordinator (KIP-890).
    transaction_partition_verification_enable: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    #: Followers that are sent records no faster than the broker allows; entries `partition:broker`, or `*`.
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    #: Replicas that fetch records no faster than the broker allows, in the same form.
    follower_replication_throttled_replicas: tuple[str, ...] = ()

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes_old_segments(self) -> bool:
        return "delete" in self.cleanup_policy
