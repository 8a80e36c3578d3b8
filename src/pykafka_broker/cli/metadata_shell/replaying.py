"""The metadata log, as it is read from files or from the network, replayed into a view."""

from __future__ import annotations

from pykafka_broker.cli.metadata_shell.tree import View
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.loader import MetadataLoader
from pykafka_broker.cluster.records import decode_record
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import BatchHeader, read_records
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.snapshots import Snapshot


class Replaying:
    """Takes in a snapshot, or none, and the batches after it."""

    def __init__(self) -> None:
        self._loader = MetadataLoader(ClusterImage())
        self._last_timestamp_ms = -1
        #: The offset after the records taken in, and the epoch of the last of them.
        self.next_offset = 0
        self.last_epoch = 0

    @property
    def view(self) -> View:
        """Everything taken in, except a metadata transaction that has not ended."""
        return View(self._loader.image, self._last_timestamp_ms)

    def start_from(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Begin with a snapshot, which replaces everything taken in before."""
        self._loader = MetadataLoader(ClusterImage())
        end_offset, epoch = snapshot_id
        self._loader.apply(map(decode_record, snapshot.values), offset=0, epoch=epoch)
        self._loader.skip_to(end_offset - 1, epoch)
        self._last_timestamp_ms = snapshot.last_timestamp_ms
        self.next_offset, self.last_epoch = snapshot_id

    def take(self, header: BatchHeader, batch: Buffer) -> None:
        """Replay a batch."""
        epoch = header.partition_leader_epoch
        if header.is_control:
            self._loader.skip_to(header.last_offset, epoch)
        else:
            records = [decode_record(record.value) for record in read_records(batch)]
            self._loader.apply(records, offset=header.base_offset, epoch=epoch)
        self._last_timestamp_ms = header.max_timestamp
        self.next_offset, self.last_epoch = header.next_offset, epoch
