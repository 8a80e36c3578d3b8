"""The choice of the log directory for a new log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pykafka_broker.log.disk.checkpoints import is_reserved_id
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.disk.names import partition_folder
from pykafka_broker.log.manager.log_folders import WantedLog
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The number of absent partitions whose preferred directory is kept; the oldest is forgotten first.
MAX_PREFERRED = 10_000


class Placement:
    """Chooses among the directories of one broker."""

    def __init__(self, dirs: LogDirs, registry: LogRegistry) -> None:
        self._dirs = dirs
        self._registry = registry
        #: The directories that clients want for partitions that are not here yet.
        self._preferred: dict[PartitionKey, LogDir] = {}

    def prefer(self, topic: str, partition: int, log_dir: LogDir) -> None:
        """If the partition ever comes to this broker, make its log in this directory."""
        self._preferred.pop((topic, partition), None)
        while len(self._preferred) >= MAX_PREFERRED:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[topic, partition] = log_dir

    def log_counts(self) -> Counter[str]:
        """The number of logs in each directory, by path."""
        if len(self._dirs.of_partitions) == 1:  # nothing to choose from, so nothing to count
            return Counter()
        return Counter(directory_name(log.directory) for log in self._registry.all())

    def is_elsewhere(self, directory_id: bytes | None) -> bool:
        """Whether this is the id of a directory that is not here."""
        known = {log_dir.directory_id for log_dir in self._dirs.of_partitions}
        return directory_id is not None and not is_reserved_id(directory_id) and directory_id not in known

    def dir_for(self, wanted: WantedLog, counts: Mapping[str, int]) -> LogDir:
        """The directory that a client or the controller chose, or the one with the fewest logs; `counts` is
        by path. A log whose directory is missing is not made elsewhere, unless it may begin anew: records
        that only it had would be lost silently.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, no directory is in service, or the log may exist in one that is
                out of service or missing.
        """
        if not wanted.is_new and not all(log_dir.is_online for log_dir in self._dirs.of_partitions):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"The log of {wanted.topic}-{wanted.partition} may be in a directory that is out of service",
            )
        if not (wanted.is_new or wanted.may_begin_anew) and self.is_elsewhere(wanted.directory_id):
            folder = partition_folder(wanted.topic, wanted.partition)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Its log is in a directory that is not among log.dirs (directory.id "
                f"{uuid_text(wanted.directory_id or b'')}). Bring that directory back and start again; if it "
                f"is lost, make an empty folder {folder} in one of log.dirs to begin anew, or delete the "
                "topic.",
            )
        online = self._dirs.online
        preferred = self._preferred.pop((wanted.topic, wanted.partition), None)
        if preferred is not None and preferred.is_online:
            return preferred
        for log_dir in online:
            if log_dir.directory_id == wanted.directory_id:
                return log_dir
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No log directory is in service")
        if all(log_dir.is_cordoned for log_dir in online):  # cordoned after the partition was assigned
            return online[0]
        return min(
            (log_dir for log_dir in online if not log_dir.is_cordoned),
            key=lambda log_dir: counts[log_dir.path],
        )
