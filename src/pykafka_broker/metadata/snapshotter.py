"""Writes snapshots of the published metadata and trims the log, so that a start need not read all of it.

Every node writes its own snapshots, voter or not. A snapshot is due after `bytes_between_snapshots` of the
log, with the first image published after `interval_ms`, and at a stop after `at_stop_bytes`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.raft.core.log_view import Membership, SnapshotId
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.image.publisher.SnapshotGenerator")


class SnapshotSettings(NamedTuple):
    """When a snapshot is due; an `interval_ms` of 0 turns off snapshots by time.

    A start reads `at_stop_bytes` in less than half a second. Each stop and start of a broker with 5,000
    partitions adds half of `at_stop_bytes` to the log.
    """

    bytes_between_snapshots: int = 20 << 20
    interval_ms: int = 3_600_000
    at_stop_bytes: int = 1 << 20


class Snapshotter:
    """Writes snapshots of published images.

    `membership_below(offset)` gives the voters as of an offset; `on_change` is called when snapshots were
    written or removed.
    """

    def __init__(
        self,
        storage: RaftStorage,
        membership_below: Callable[[int], Membership],
        scheduler: Scheduler,
        *,
        on_change: Callable[[], None],
        run_blocking: RunBlocking,
        settings: SnapshotSettings,
    ) -> None:
        self._storage = storage
        self._membership_below = membership_below
        self._on_change = on_change
        self._scheduler = scheduler
        self._run_blocking = run_blocking
        self._settings = settings
        #: When the last snapshot was written, or this began (monotonic).
        self._last_snapshot_ms = scheduler.monotonic_ms()
        #: Runs while a snapshot is written.
        self._writing: asyncio.Task[None] | None = None

    def on_published(self, image: ClusterImage, _offset: int) -> None:
        """Begin a snapshot of `image` if one is due."""
        if self._writing is None and self._is_due():
            self._writing = asyncio.get_running_loop().create_task(self._write(image))

    async def close(self, image: ClusterImage) -> None:
        """Write a snapshot at the stop, if one is due then."""
        if self._writing is not None:
            await self._writing
        elif self._storage.bytes_since_snapshot >= self._settings.at_stop_bytes:
            await self._write(image)

    def _is_due(self) -> bool:
        """Whether a snapshot is due by the bytes of the log or by time."""
        if self._storage.bytes_since_snapshot >= self._settings.bytes_between_snapshots:
            return True
        age_ms = self._scheduler.monotonic_ms() - self._last_snapshot_ms
        return 0 < self._settings.interval_ms <= age_ms

    async def _write(self, image: ClusterImage) -> None:
        """Write a snapshot of `image`, and trim the log."""
        storage = self._storage
        storage.bytes_since_snapshot = 0
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        membership = self._membership_below(snapshot_id.end_offset)
        now_ms, self._last_snapshot_ms = self._scheduler.now_ms(), self._scheduler.monotonic_ms()

        def write() -> None:
            values = [encode_record(r, image.metadata_version) for r in snapshot_records(image)]
            storage.write_snapshot(snapshot_id, values, membership, last_timestamp_ms=now_ms, now_ms=now_ms)

        try:
            await self._run_blocking(write)
            storage.trim(now_ms)
        # The log still has everything. The next snapshot is tried after as many bytes again.
        except OSError as error:
            logger.warning("A snapshot of the metadata could not be written: %s", error)
        except Exception:
            logger.exception("A snapshot of the metadata could not be written")
        else:
            logger.info("Wrote the metadata snapshot %s", snapshot_id.file_name)
        finally:
            self._writing = None
        self._on_change()  # also after an error: the log may have been trimmed before it
