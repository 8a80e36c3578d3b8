"""A share coordinator over a `__share_group_state` in memory."""

from __future__ import annotations

from collections.abc import Awaitable

from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import ReadResult, StateResult
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches, read_records
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.testing.clock import VirtualClock

TOPIC = b"\x11" * 16
KEY = SharePartitionKey("workers", TOPIC, 0)
PARTITIONS = 4
CONFIG = ShareCoordinatorConfig(snapshot_update_records_per_snapshot=3)


class Coordinator:
    """A `__share_group_state` in memory and a service over it."""

    def __init__(self, config: ShareCoordinatorConfig = CONFIG, codec: Codec = Codec.NONE) -> None:
        self.clock = VirtualClock()
        self.commits_at_once = True
        self.disk_error: KafkaError | None = None
        #: The batches of each partition, and which records are there.
        self.logs: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.starts = dict.fromkeys(self.logs, 0)
        self.ends = dict.fromkeys(self.logs, 0)
        self.service = ShareService(config, self, WallTimers(self.clock), codec=codec, write_timeout_ms=5_000)
        self.shards = self.service.shards
        self.shards.set_partition_count(PARTITIONS)

    # ---- the log ----

    def max_batch_bytes(self, partition: int) -> int:
        return 1 << 20

    def end_offset(self, partition: int) -> int:
        return self.ends[partition]

    def append(self, partition: int, batch: bytes, *, guard: int = 0, transaction_version: int = 0) -> int:
        if self.disk_error is not None:
            raise self.disk_error
        [(_, header)] = iter_batches(batch)
        entries = [(record.timestamp, record.key, record.value, ()) for record in read_records(batch)]
        fields = BatchFields(base_offset=self.ends[partition], codec=Codec(header.codec))
        self.logs[partition].append(build_batch(entries, fields))
        self.ends[partition] += len(entries)
        if self.commits_at_once:
            self.shards.on_high_watermark(partition, self.ends[partition])
        return self.ends[partition]

    def delete_records(self, partition: int, before_offset: int) -> None:
        if self.disk_error is not None:
            raise self.disk_error
        self.starts[partition] = max(self.starts[partition], before_offset)

    def left(self, partition: int) -> list[bytes]:
        """The batches that are not deleted."""
        return [
            batch
            for batch in self.logs[partition]
            for _, header in iter_batches(batch)
            if header.next_offset > self.starts[partition]
        ]

    async def load_all(self) -> None:
        for partition in self.logs:
            await self.shards.load(partition, self.left(partition), leader_epoch=0)

    @classmethod
    async def serving(cls, config: ShareCoordinatorConfig = CONFIG, codec: Codec = Codec.NONE) -> Coordinator:
        coordinator = cls(config, codec)
        await coordinator.load_all()
        return coordinator

    # ---- requests ----

    def initialize(self, key: SharePartitionKey = KEY) -> Awaitable[StateResult]:
        now_ms = self.service.now_ms()
        return self.service.answer(
            key,
            lambda token: events.InitializeState(token, now_ms, key, 1, 0, 1),
            refused=refusals.initialize,
        )

    def write(self, *batches: StateBatch, key: SharePartitionKey = KEY) -> Awaitable[StateResult]:
        now_ms = self.service.now_ms()
        return self.service.answer(
            key,
            lambda token: events.WriteState(token, now_ms, key, 1, -1, -1, 0, batches, 1),
            refused=refusals.write,
        )

    def read(self, key: SharePartitionKey = KEY) -> Awaitable[ReadResult]:
        now_ms = self.service.now_ms()
        return self.service.answer(
            key, lambda token: events.ReadState(token, now_ms, key, -1, 1), refused=refusals.read
        )

    @property
    def partition(self) -> int:
        """The partition of the topic that has the state."""
        return self.service.partition_for(KEY)
