"""The folders of logs: made, set aside and removed."""

from __future__ import annotations

import logging

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.file_work import FileWork
from pykafka_broker.log.disk.files import FileSystem, directory_name, join, random_id
from pykafka_broker.log.disk.names import LOG_SUFFIX, partition_folder, set_aside_folder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.log.recovery.offset_checkpoints import clear_offsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.log.LogManager")


class WantedLog(NamedTuple):
    """A log that must exist.

    `is_new`: it cannot be in a directory that is out of service. `may_begin_anew`: other replicas have all
    its acknowledged records, so a log in a missing directory, or one without its topic id, is not needed.
    `in_first_epoch`: the partition has only been led in epoch 0.
    """

    topic: str
    partition: int
    topic_id: bytes
    config: LogConfig
    directory_id: bytes | None = None
    is_new: bool = True
    may_begin_anew: bool = False
    in_first_epoch: bool = False


class LogFolders:
    """The folders of one broker's logs. Event loop only, except where said."""

    def __init__(self, files: FileSystem, dirs: LogDirs, work: FileWork) -> None:
        self._files = files
        self._dirs = dirs
        self._work = work

    def dir_of(self, log: PartitionLog) -> LogDir:
        """The directory a log lies in."""
        return self._dirs.holding(log.directory)

    def make(
        self,
        wanted: WantedLog,
        log_dir: LogDir,
        name: str | None = None,
        start_offset: int = 0,
        *,
        stays_open: bool = False,
    ) -> PartitionLog:
        """A new log in a new folder, called `name` or like the partition. Worker-safe.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses.
        """
        assert log_dir.environment is not None
        topic, partition = wanted.topic, wanted.partition
        directory = join(log_dir.path, name or partition_folder(topic, partition))
        self._work.leave(directory)
        try:
            if (topic, partition) in log_dir.gone:
                clear_offsets(self._files, log_dir)
            log = create_log(
                log_dir.environment,
                LogIdentity(directory, topic, partition, wanted.topic_id),
                wanted.config,
                start_offset=start_offset,
                in_first_epoch=wanted.in_first_epoch,
                stays_open=stays_open,
            )
        except OSError as error:
            if not isinstance(error, FileExistsError):  # a log not in the registry: no fault of the disk
                log_dir.environment.write_failed(error)
                self._remove_half_made(directory)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot create the log of {topic}-{partition}: {error}"
            ) from error
        return log

    def _remove_half_made(self, directory: str) -> None:
        """Clear the way for another attempt, but never remove a file that may hold records."""
        try:
            entries = self._files.entries(directory, sizes_of=(LOG_SUFFIX,))
            if not any(entry.name.endswith(LOG_SUFFIX) and entry.size for entry in entries):
                self._files.remove_tree(directory)
        except OSError as error:
            logger.debug("%s cannot be removed: %s", directory, error)

    def remove(self, log: PartitionLog) -> None:
        """Take a log out of service now, rename its folder soon, and remove it `file.delete.delay.ms`
        later.
        """
        aside = self._retire(log, "delete")
        self._work.remove_folder(log.directory, aside, log.state.config.file_delete_delay_ms, log.settle)

    def leave(self, directory: str) -> None:
        """Return when a folder that waits for its removal has been renamed. Worker-safe."""
        self._work.leave(directory)

    def keep_as_stray(self, log: PartitionLog) -> None:
        """Take a log out of service and keep its data in a folder that ends in `-stray`. May wait for the
        disk.
        """
        aside = self._retire(log, "stray")
        log.settle()
        try:
            self._files.rename(log.directory, aside)
        except OSError as error:
            logger.error(
                "%s, which the metadata does not know, cannot be set aside: %s", log.directory, error
            )
        else:
            logger.warning("The metadata does not know %s: kept as %s", log.directory, aside)

    def _retire(self, log: PartitionLog, state: str) -> str:
        """Let no worker begin work in a log's folder; return the path to rename the folder to."""
        log.retire()
        self.dir_of(log).gone.add((log.topic, log.partition))
        return join(
            directory_name(log.directory), set_aside_folder(log.topic, log.partition, random_id(), state)
        )
