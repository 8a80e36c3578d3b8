"""The log of one partition, as the rest of the broker uses it: its identity and its parts.

    state       segments, offsets, leader epochs, producers, settings (`LogState`); all parts share it
    reader      plans reads, finds offsets by time and epoch
    writer      appends
    replica_writer
                appends the batches of a leader
    trimmer     retention, DeleteRecords, truncation
    compaction  cleaned segments take the place of others
    flusher     makes durable
    roller      from one segment to the next; makes files for appends that must not wait for a disk
    epoch_file  leader epochs and their file
    density     from where on a compacted log has no gaps

Left out on purpose: remote (tiered) storage, message formats before v2.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.compaction import Compaction
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.epoch_file import EpochFile
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.reader import LogReader
from pykafka_broker.log.partition.replica_writer import ReplicaWriter
from pykafka_broker.log.partition.rolling import Roller
from pykafka_broker.log.partition.state import LogIdentity, LogState, OpenedLog
from pykafka_broker.log.partition.stored_checks import StoredChecks
from pykafka_broker.log.partition.trimming import LogTrimmer
from pykafka_broker.log.partition.writer import LogWriter
from pykafka_broker.machine.illegal_state import IllegalState


class PartitionLog:
    """One partition's log. Made by `recovery.load_partition`."""

    __slots__ = (
        "_folder",
        "compaction",
        "density",
        "epoch_file",
        "flusher",
        "reader",
        "replica_writer",
        "roller",
        "state",
        "trimmer",
        "writer",
    )

    def __init__(
        self, environment: Environment, identity: LogIdentity, config: LogConfig, opened: OpenedLog
    ) -> None:
        state = self.state = LogState(identity, config, opened)
        folder = self._folder = LogFolder(state, environment.files, opened.unsynced)
        flusher = self.flusher = Flusher(state, environment, folder, snapshot_offset=opened.snapshot_offset)
        epoch_file = self.epoch_file = EpochFile(state, environment, folder)
        roller = self.roller = Roller(state, environment, folder, flusher, epoch_file)
        density = self.density = Density(state, environment, folder, dense_from=opened.dense_from)
        compaction = self.compaction = Compaction(state, environment, folder, flusher, density)
        self.reader = LogReader(state, environment, StoredChecks(state, density))
        self.writer = LogWriter(state, environment, flusher, roller, density)
        trimmer = self.trimmer = LogTrimmer(
            state, environment, folder, flusher, epoch_file, roller, density, compaction
        )
        self.replica_writer = ReplicaWriter(state, environment, flusher, epoch_file, roller, density, trimmer)

    def __repr__(self) -> str:
        return repr(self.state)

    # --- identity ---------------------------------------------------------------------------------

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.state.identity.topic

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.state.identity.partition

    @property
    def topic_id(self) -> bytes:
        """The topic's id; all zero while it is not known."""
        return self.state.identity.topic_id

    @property
    def name(self) -> str:
        """As Kafka prints it: "orders-3"."""
        return self.state.name

    @property
    def directory(self) -> str:
        """The folder of the log."""
        return self.state.identity.directory

    def identify(self, topic_id: bytes) -> None:
        """Set the topic id, which the folder did not have."""
        self.state.identity = self.state.identity._replace(topic_id=topic_id)

    # --- in service, and out of it ----------------------------------------------------------------

    @property
    def on_advance(self) -> list[Callable[[LogState], object]]:
        """`LogState.on_advance`."""
        return self.state.on_advance

    @property
    def closed(self) -> bool:
        """Nothing may be appended any more."""
        return self.state.closed

    @property
    def offline(self) -> OSError | None:
        """The error that took this log out of service."""
        return self.state.offline

    def close(self, clean: bool = True) -> bool:
        """Stop using the log; with `clean`, leave it so that the next start needs no recovery.

        Returns whether that worked, and only then may the clean shutdown marker be written. Worker-safe
        once nothing is appended any more. Reads planned before still work.
        """
        if self.state.closed:
            return True
        self.state.closed = True
        try:
            return clean and self.state.offline is None and self.flusher.close_in_order()
        finally:
            self.reader.release_files()

    def retire(self) -> None:
        """The partition was deleted: refuse appends, wake waiting readers. Reads planned before work."""
        state = self.state
        state.retired = state.closed = True
        state.offline = OSError(errno.ESTALE, "the partition was deleted")
        state.wake_waiting()

    def settle(self) -> None:
        """Return when no worker touches a file of the retired log by name any more. May take long."""
        self._folder.settle()

    # --- moved ------------------------------------------------------------------------------------

    def rename_folder(self, directory: str) -> None:
        """Give the folder another name in the same log directory, durable with the next flush.

        Raises:
            OSError: it cannot be renamed; nothing has changed.
        """
        with self.flusher.lock:
            self._folder.rename(directory)

    def take_over(self, source: PartitionLog, directory: str) -> None:
        """Take the place of `source`, whose records are all here too, in the folder `directory`.

        Producers, their open transactions and the waiting readers of `source` go on here; `source` can only
        be read from now on. The new name is durable with the next flush.

        Raises:
            IllegalState: the logs end at different offsets; nothing has changed.
            OSError: the folder cannot be renamed; nothing has changed.
        """
        state, old = self.state, source.state
        if state.log_end_offset != old.log_end_offset:
            raise IllegalState(
                f"{state.name} ends at {state.log_end_offset} in {state.directory}: "
                f"it cannot take the place of {old.directory}, which ends at {old.log_end_offset}"
            )
        self.rename_folder(directory)
        state.reconfigure(old.config)
        state.producers = old.producers
        state.epochs = LeaderEpochs(old.epochs.entries)
        self.epoch_file.is_saved = False
        state.latest_epoch = old.latest_epoch
        state.log_start_offset = old.log_start_offset
        state.high_watermark = old.high_watermark
        state.last_stable_offset = old.last_stable_offset
        state.cleaned_offset = old.cleaned_offset
        self.density.ends_copying()
        state.on_advance = old.on_advance
        if state.log_end_offset > state.segments[0].base_offset:
            self.flusher.take_snapshot(state.log_end_offset)
