"""Leader epochs as a log keeps them on disk: `leader-epoch-checkpoint` follows appends and truncations."""

from __future__ import annotations

from pykafka_broker.log.disk.checkpoints import EpochEntry, encode_epochs
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.leader_epochs import UNDEFINED_EPOCH
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class EpochFile:
    """Keeps the epochs of one log, and the file that names them. Event loop, except where said."""

    __slots__ = ("_environment", "_folder", "_state", "is_saved")

    def __init__(self, state: LogState, environment: Environment, folder: LogFolder) -> None:
        self._state = state
        self._environment = environment
        self._folder = folder
        #: The file holds the entries of `LogState.epochs`.
        self.is_saved = True

    def begin(self, epoch: int) -> None:
        """Let `epoch` start at the log end before a batch is appended: this broker leads the log from now on,
        or is about to copy the epoch's first batch. The file is written with that batch.
        """
        if self._state.epochs.assign(epoch, self._state.log_end_offset):
            self.is_saved = False

    def start(self, epoch: int, start_offset: int) -> None:
        """Before the first batch of `epoch` is written, name the epoch in the file (not synced): recovery
        refuses batches of unknown epochs.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, a batch of a later epoch is in the log.
            OSError: the disk refused.
        """
        epochs = self._state.epochs
        if epoch < epochs.latest:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"Append to {self._state.name} under leader epoch {epoch} after one under {epochs.latest}",
            )
        if epochs.assign(epoch, start_offset) or not self.is_saved:
            self.save()
        self._state.latest_epoch = epoch

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or past `end_offset`, where the log ends now. If the disk refuses
        to write that, the next append writes it. May wait for the disk.
        """
        state = self._state
        if not state.epochs.truncate_from_end(end_offset):
            return
        try:
            self.save()
            state.latest_epoch = state.epochs.latest
        except OSError as error:
            self._environment.write_failed(error)
            state.latest_epoch = UNDEFINED_EPOCH  # whatever epoch is appended next: `start` comes first

    def save(self) -> None:
        """Write the file. May wait for the disk. Worker-safe.

        Raises:
            OSError: the disk refused.
        """
        self.is_saved = False
        entries: tuple[EpochEntry, ...] = ()

        def encoded() -> bytes:
            nonlocal entries
            entries = self._state.epochs.entries
            return encode_epochs(entries)

        self._folder.replace_epochs(encoded)
        self.is_saved = self._state.epochs.entries is entries

    def save_later(self) -> None:
        """Write the file in the background: until then it has an epoch too many, which does no harm."""

        def save() -> None:
            try:
                self.save()
            except OSError as error:
                self._environment.write_failed(error)

        self._environment.run_later(save)
